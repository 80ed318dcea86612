"""Tokens are counted without a download, and estimated about right in any language."""

import subprocess
import sys

import pytest

from antiphon.continuity import tokens
from antiphon.continuity.tokens import count_message, count_tokens, estimate_tokens, most_tokens
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage

SAMPLES = {
    "English": (
        "Could you tell me what the weather will be like in Edinburgh on Saturday? We are "
        "planning a walk along the coast with the children, and I would rather know beforehand "
        "whether we need umbrellas."
    ),
    "German": (
        "Können Sie mir bitte sagen, wie das Wetter am Samstag in Hamburg wird? Wir möchten "
        "mit den Kindern am Hafen spazieren gehen und wüssten gern vorher, ob wir Regenschirme "
        "brauchen."
    ),
    "Finnish": (
        "Voisitko kertoa, millainen sää Helsingissä on lauantaina? Suunnittelemme kävelyretkeä "
        "merenrannalle lasten kanssa ja haluaisimme tietää etukäteen, tarvitsemmeko "
        "sateenvarjoja."
    ),
    "Turkish": (
        "Cumartesi günü İstanbul'da havanın nasıl olacağını söyleyebilir misin? Çocuklarla "
        "sahilde yürüyüş yapmayı planlıyoruz ve şemsiyeye ihtiyacımız olup olmayacağını bilmek "
        "istiyoruz."
    ),
    "Vietnamese": (
        "Bạn có thể cho tôi biết thời tiết ở Hà Nội vào thứ bảy sẽ như thế nào không? Chúng "
        "tôi định đi dạo quanh hồ với bọn trẻ và muốn biết trước có cần mang ô hay không."
    ),
    "Russian": (
        "Не могли бы вы сказать, какая погода будет в субботу в Петербурге? Мы собираемся "
        "погулять с детьми по набережной и хотели бы заранее знать, понадобятся ли нам зонты."
    ),
    "Greek": (
        "Μπορείς να μου πεις τι καιρό θα κάνει το Σάββατο στη Θεσσαλονίκη; Σχεδιάζουμε να "
        "περπατήσουμε στην παραλία με τα παιδιά και θέλουμε να ξέρουμε αν θα χρειαστούμε "
        "ομπρέλες."
    ),
    "Arabic": (
        "هل يمكنك أن تخبرني كيف سيكون الطقس في القاهرة يوم السبت؟ نحن نخطط للتنزه على ضفة "
        "النهر مع الأطفال ونود أن نعرف مسبقا إن كنا سنحتاج إلى مظلات."
    ),
    "Hebrew": (
        "תוכל לומר לי מה יהיה מזג האוויר בחיפה בשבת? אנחנו מתכננים לטייל לאורך החוף עם הילדים "
        "ורוצים לדעת מראש אם נצטרך מטריות."
    ),
    "Hindi": (
        "क्या आप बता सकते हैं कि शनिवार को दिल्ली में मौसम कैसा रहेगा? हम बच्चों के साथ नदी के "
        "किनारे घूमने जा रहे हैं और पहले से जानना चाहते हैं कि छाते की ज़रूरत पड़ेगी या नहीं।"
    ),
    "Tamil": (
        "சனிக்கிழமை சென்னையில் வானிலை எப்படி இருக்கும் என்று சொல்ல முடியுமா? நாங்கள் "
        "குழந்தைகளுடன் கடற்கரையில் நடக்கப் போகிறோம், குடை தேவையா என்று முன்பே தெரிந்துகொள்ள "
        "விரும்புகிறோம்."
    ),
    "Thai": (
        "ช่วยบอกหน่อยได้ไหมว่าวันเสาร์นี้อากาศที่เชียงใหม่จะเป็นอย่างไร "
        "เราวางแผนจะไปเดินเล่นริมแม่น้ำกับเด็ก ๆ และอยากรู้ล่วงหน้าว่าต้องพกร่มหรือเปล่า"
    ),
    "Georgian": (
        "შეგიძლია მითხრა, როგორი ამინდი იქნება შაბათს თბილისში? ბავშვებთან ერთად მდინარის "
        "პირას გასეირნებას ვგეგმავთ და გვინდა წინასწარ ვიცოდეთ, დაგვჭირდება თუ არა ქოლგები."
    ),
    "Amharic": (
        "ቅዳሜ በአዲስ አበባ የአየር ሁኔታው ምን እንደሚመስል ልትነግረኝ ትችላለህ? ከልጆቹ ጋር በወንዙ ዳር ለመራመድ አስበናል፤ ጃንጥላ "
        "እንደሚያስፈልገን አስቀድመን ማወቅ እንፈልጋለን።"
    ),
    "Chinese": (
        "你能告诉我星期六杭州的天气怎么样吗？我们打算带孩子们去湖边散步，想提前知道需不需要带伞，还想问一下附近有没有适合全家吃饭的餐馆。"
    ),
    "Japanese": (
        "土曜日の京都の天気はどうなるか教えてもらえますか。"
        "子どもたちと川沿いを散歩する予定なので、傘が必要かどうか前もって知りたいです。"
    ),
    "Korean": (
        "토요일에 부산 날씨가 어떨지 알려 주실 수 있나요? "
        "아이들과 함께 바닷가를 산책할 계획이라서 우산이 필요한지 미리 알고 싶습니다."
    ),
    "JSON": (
        '{"error": null, "data": {"id": "b7f1c9e2", "items": [{"name": "Lake House", "rating": '
        '4.6, "open_now": true, "distance_m": 1250}, {"name": "Corner Café", "rating": 3.9, '
        '"open_now": false, "distance_m": 310}], "next_page": "eyJvIjoyMH0="}}'
    ),
    "numbers": ("Call +44 20 7946 0958 at 14:35 on 2026-11-21, order 88213-4471-09, total 1,284.50 euros."),
}


def test_known_texts_have_the_counts_of_the_vocabulary() -> None:
    assert [count_tokens(text) for text in ("", "hello world", "internationalization", "12345")] == [0, 2, 2, 2]


@pytest.mark.parametrize("language", SAMPLES)
def test_the_estimate_is_near_the_count(language: str) -> None:
    ratio = estimate_tokens(SAMPLES[language]) / count_tokens(SAMPLES[language])
    assert 0.8 <= ratio <= 1.75


@pytest.mark.parametrize("language", SAMPLES)
def test_neither_exceeds_the_quick_bound(language: str) -> None:
    message = UserMessage(SAMPLES[language])
    assert count_message(message) <= most_tokens(message)
    assert estimate_tokens(SAMPLES[language]) <= len(SAMPLES[language].encode())


def test_tokens_are_estimated_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rs_bpe.bpe", None)
    tokens._load_vocabulary.cache_clear()
    try:
        assert count_tokens(SAMPLES["Korean"]) == estimate_tokens(SAMPLES["Korean"])
    finally:
        tokens._load_vocabulary.cache_clear()


def test_the_vocabulary_is_loaded_only_when_something_is_counted() -> None:
    program = "import sys, antiphon.continuity.context; print('rs_bpe' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "False"


@pytest.mark.parametrize(
    "message",
    [
        UserMessage(""),
        UserMessage("half \ud800 of a character"),
        AssistantMessage("Wait.", (CallMade("c1", "search", {"query": "two words \udc00"}),)),
        ToolMessage("c1", "search", {"results": [1, None, {"a": "b" * 500}]}),
        ToolMessage("c1", "search", object()),
    ],
)
def test_any_message_can_be_counted(message: Message) -> None:
    assert 0 < count_message(message) <= most_tokens(message)


def test_calls_and_results_count() -> None:
    empty = count_message(AssistantMessage(""))
    assert count_message(AssistantMessage("", (CallMade("c1", "search", {"query": "word " * 50}),))) > empty + 50
    assert count_message(ToolMessage("c1", "search", {"found": "word " * 50})) > empty + 50
