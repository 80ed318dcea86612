"""Places that people name when they mean a time zone, and that the IANA database has no entry for."""

from typing import Final

PLACES: Final = {
    "Africa/Abidjan": "the Ivory Coast",
    "Africa/Accra": "Kumasi",
    "Africa/Banjul": "the Gambia",
    "Africa/Cairo": "Alexandria, Giza",
    "Africa/Casablanca": "Marrakesh, Marrakech, Rabat, Fez, Tangier",
    "Africa/Dar_es_Salaam": "Zanzibar, Dodoma",
    "Africa/Johannesburg": "Cape Town, Pretoria, Durban, Soweto",
    "Africa/Lagos": "Abuja, Kano, Ibadan",
    "Africa/Mbabane": "Eswatini, Swaziland",
    "Africa/Nairobi": "Mombasa",
    "America/Anchorage": "Alaska, Fairbanks, AKST, AKDT",
    "America/Argentina/Buenos_Aires": "Argentina, Rosario, La Plata",
    "America/Bogota": "Medellin, Cali, Cartagena",
    "America/Cancun": "Playa del Carmen, Tulum, Cozumel",
    "America/Caracas": "Maracaibo",
    "America/Chicago": (
        "Houston, Dallas, Austin, San Antonio, Fort Worth, Milwaukee, Minneapolis, Saint Paul, St Louis, Kansas City, "
        "New Orleans, Memphis, Nashville, Oklahoma City, Tulsa, Omaha, Des Moines, Madison, Little Rock, "
        "Baton Rouge, Wichita, Alabama, Arkansas, Illinois, Iowa, Kansas, Louisiana, Minnesota, "
        "Mississippi, Missouri, Nebraska, Oklahoma, Texas, Wisconsin, Central Time, US Central, CST, CDT"
    ),
    "America/Costa_Rica": "San Jose Costa Rica",
    "America/Denver": (
        "Colorado Springs, Boulder, Salt Lake City, Albuquerque, Santa Fe, El Paso, Cheyenne, Billings, Colorado, "
        "Montana, New Mexico, Utah, Wyoming, Mountain Time, US Mountain, MST, MDT"
    ),
    "America/Detroit": "Michigan, Ann Arbor, Grand Rapids",
    "America/Edmonton": "Calgary, Alberta, Banff",
    "America/Guayaquil": "Ecuador, Quito",
    "America/Halifax": "Nova Scotia, Prince Edward Island",
    "America/Los_Angeles": (
        "San Francisco, San Diego, San Jose, Sacramento, Oakland, Palo Alto, Hollywood, Berkeley, Silicon Valley, "
        "Seattle, Portland, Las Vegas, Vegas, Reno, Spokane, LA, California, Nevada, Oregon, Washington State, "
        "Pacific Time, US Pacific, PST, PDT, PT"
    ),
    "America/Mexico_City": "Guadalajara, Puebla, Acapulco",
    "America/Moncton": "New Brunswick",
    "America/Montevideo": "Punta del Este",
    "America/Nassau": "the Bahamas",
    "America/New_York": (
        "New York City, New York State, NYC, Manhattan, Brooklyn, Boston, Philadelphia, Washington DC, Miami, "
        "Orlando, Tampa, Jacksonville, Atlanta, Charlotte, Raleigh, Pittsburgh, Cleveland, Columbus, Cincinnati, "
        "Baltimore, Buffalo, Newark, Richmond, Savannah, Charleston, Hartford, Portland Maine, Connecticut, Delaware, "
        "Florida, Maine, Maryland, Massachusetts, New Hampshire, New Jersey, North Carolina, Ohio, Pennsylvania, "
        "Rhode Island, South Carolina, Vermont, Virginia, West Virginia, Eastern Time, US Eastern, EST, EDT, ET"
    ),
    "America/Nuuk": "Greenland",
    "America/Phoenix": "Arizona, Tucson, Scottsdale, Mesa, Tempe",
    "America/Regina": "Saskatchewan, Saskatoon",
    "America/Santiago": "Chile, Valparaiso",
    "America/Santo_Domingo": "the Dominican Republic, Punta Cana",
    "America/Sao_Paulo": "Rio de Janeiro, Rio, Brasilia, Belo Horizonte, Curitiba, Porto Alegre",
    "America/St_Johns": "Newfoundland, St John's",
    "America/Toronto": "Montreal, Ottawa, Quebec, Quebec City, Ontario, Niagara Falls",
    "America/Vancouver": "British Columbia, Whistler",
    "America/Winnipeg": "Manitoba",
    "Asia/Almaty": "Kazakhstan, Astana",
    "Asia/Baghdad": "Basra, Mosul, Erbil",
    "Asia/Bangkok": "Phuket, Chiang Mai, Pattaya",
    "Asia/Dhaka": "Chittagong",
    "Asia/Dubai": "Abu Dhabi, the UAE, the United Arab Emirates, the Emirates, Sharjah",
    "Asia/Ho_Chi_Minh": "Saigon, Hanoi, Da Nang",
    "Asia/Hong_Kong": "HK, Kowloon, HKT",
    "Asia/Jakarta": "Bandung, Java, Sumatra, Surabaya",
    "Asia/Jerusalem": "Haifa, Tel Aviv",
    "Asia/Karachi": "Lahore, Islamabad, Rawalpindi, PKT",
    "Asia/Kolkata": (
        "Mumbai, Bombay, Delhi, New Delhi, Bangalore, Bengaluru, Chennai, Hyderabad, Pune, Ahmedabad, Jaipur, Goa, "
        "Kerala, IST"
    ),
    "Asia/Kuala_Lumpur": "Malaysia, Penang, Johor Bahru",
    "Asia/Makassar": "Bali, Denpasar, Lombok",
    "Asia/Manila": "the Philippines, Cebu, Quezon City",
    "Asia/Nicosia": "Cyprus, Limassol",
    "Asia/Pyongyang": "North Korea",
    "Asia/Qatar": "Doha",
    "Asia/Riyadh": "Jeddah, Mecca, Medina",
    "Asia/Seoul": "Busan, South Korea, Korea, KST",
    "Asia/Shanghai": "Beijing, China, Shenzhen, Guangzhou, Chengdu, Wuhan, Hangzhou, Nanjing, Tianjin, Xi'an",
    "Asia/Singapore": "SGT",
    "Asia/Taipei": "Kaohsiung",
    "Asia/Tashkent": "Uzbekistan",
    "Asia/Tehran": "Isfahan, Shiraz",
    "Asia/Tokyo": "Osaka, Kyoto, Yokohama, Nagoya, Sapporo, Fukuoka, Kobe, Hiroshima, Okinawa, JST",
    "Asia/Ulaanbaatar": "Mongolia",
    "Asia/Yangon": "Myanmar, Burma",
    "Atlantic/Azores": "the Azores",
    "Atlantic/Canary": "the Canary Islands, Tenerife, Gran Canaria, Lanzarote",
    "Atlantic/Faroe": "the Faroe Islands",
    "Australia/Adelaide": "South Australia, ACST",
    "Australia/Brisbane": "Queensland, Gold Coast, Cairns",
    "Australia/Darwin": "the Northern Territory, Alice Springs",
    "Australia/Hobart": "Tasmania",
    "Australia/Perth": "Western Australia, AWST",
    "Australia/Sydney": "Canberra, New South Wales, AEST, AEDT",
    "Europe/Amsterdam": "the Netherlands, Holland, Rotterdam, The Hague, Utrecht, Eindhoven",
    "Europe/Athens": "Crete, Thessaloniki, Santorini, EET, EEST",
    "Europe/Berlin": (
        "Germany, Munich, Hamburg, Frankfurt, Cologne, Stuttgart, Dusseldorf, Leipzig, Dresden, Hanover, Nuremberg, "
        "Bonn"
    ),
    "Europe/Brussels": "Antwerp, Ghent, Bruges",
    "Europe/Bucharest": "Transylvania",
    "Europe/Copenhagen": "Aarhus",
    "Europe/Dublin": "Cork, Galway",
    "Europe/Istanbul": "Ankara, Izmir, Antalya",
    "Europe/Kyiv": "Ukraine, Odessa, Lviv, Kharkiv",
    "Europe/Lisbon": "Portugal, Porto, the Algarve, WET",
    "Europe/London": (
        "the UK, the United Kingdom, Britain, Great Britain, England, Scotland, Wales, Northern Ireland, Edinburgh, "
        "Glasgow, Manchester, Liverpool, Birmingham, Leeds, Bristol, Cambridge, Oxford, Cardiff, Sheffield, Belfast, "
        "Newcastle, BST"
    ),
    "Europe/Madrid": "Spain, Barcelona, Valencia, Seville, Malaga, Bilbao, Ibiza, Mallorca, Majorca",
    "Europe/Moscow": "Saint Petersburg, St Petersburg, MSK",
    "Europe/Oslo": "Bergen",
    "Europe/Paris": "Lyon, Marseille, Nice, Bordeaux, Toulouse, Strasbourg, Cannes, Corsica, CET, CEST",
    "Europe/Prague": "the Czech Republic, Czechia, Brno",
    "Europe/Rome": "Milan, Naples, Florence, Venice, Turin, Bologna, Sicily, Palermo, Pisa, Sardinia",
    "Europe/Stockholm": "Gothenburg, Malmo",
    "Europe/Vatican": "the Vatican",
    "Europe/Vienna": "Salzburg, Innsbruck, Graz",
    "Europe/Warsaw": "Krakow, Gdansk, Wroclaw",
    "Europe/Zurich": "Geneva, Basel, Bern, Lausanne",
    "GMT": "GMT, Greenwich Mean Time",
    "Indian/Mahe": "the Seychelles",
    "Indian/Maldives": "the Maldives",
    "Pacific/Apia": "Samoa",
    "Pacific/Auckland": "New Zealand, Wellington, Christchurch, Queenstown, NZST, NZDT",
    "Pacific/Honolulu": "Hawaii, Maui, Waikiki, HST",
    "Pacific/Pago_Pago": "American Samoa",
    "Pacific/Port_Moresby": "Papua New Guinea",
    "Pacific/Tahiti": "French Polynesia, Bora Bora",
    "UTC": "UTC, Coordinated Universal Time, Universal Time, Zulu Time, Zulu",
}
"""Names by zone, in the spelling that answers use. "the" is part of the answer, but optional in the question."""

AMBIGUOUS: Final = (
    "Africa, America, Antarctica, Asia, Australia, Brazil, Canada, Congo, Europe, Georgia, Idaho, Indiana, Indonesia, "
    "Kentucky, Kiribati, Mexico, Micronesia, North Dakota, Russia, South Dakota, Tennessee, United States, US, USA, "
    "Washington"
)
"""Names of more than one zone, or of two places far apart. They are known, so that no near miss is taken for them."""
