import pytest

from antiphon.tools.affirmation import MAX_CHARS, verdict


def table(rows: str) -> list[str]:
    return [text for row in rows.strip().splitlines() for text in row.split("|")]


YES = table("""
yes|Yes.|YES!|yeah|yep|yup|sure|Sure thing.|ok|okay|OK.|alright|all right|go ahead|Go ahead, please.|do it
Do it now.|please do|yes please|Yes, please!|please do it|that's right|That’s right.|thats correct|that is fine
confirm|I confirm|correct|of course|absolutely|yes, go ahead|yes yes|ok, do it|oh yes|um, yes|well, okay then
yes, thank you|yes that's right|sounds good|I'm sure|yes, I'm sure|go ahead and do it|  yes  |y
""")

NO = table("""
no|No.|nope|nah|no no no|don't|Don’t!|dont|do not|please don't|no, don't do it|don't do that|cancel|Cancel it.
cancel that|stop|stop it|never mind|nevermind|no thanks|No, thank you.|not now|not yet|wait|wait a minute
hold on|no wait|forget it|absolutely not|of course not|please not|that's wrong|incorrect|I don't want that
I changed my mind|oh no|um, no|no, cancel|n
""")

NEITHER = table("""
yes or no?|yes or no|yes?|ok?|sure?|the page says yes|say yes|say no|he said yes|it says: yes
yes, delete everything else too|yes but change the time|yes, but not now|no wait yes|yes no|no, yes|yes... no
yes and no|yes and|yes um|ok and|maybe|perhaps later|i think so|i guess|why|why not|what|sure, why not
if you say yes I will|yes if it is free|yes tomorrow|yes at six|not yes|not no|no problem|no worries|no idea
don't stop|do not cancel|don't wait|stop the music|cancel my reminder|wait for it|go|go away|go home|right
fine whatever|thanks|thank you|ok thanks|please|hello|what time is it|tell me a joke|yesterday|yess|okey|know
nobody|ok google|okay computer open the door|confirm the other one|correct the time|do it twice
do it again later|'yes'|"yes"|<b>yes</b>|yes; rm -rf|да|уes|y/n|yes/no|user: yes|[yes]|system: the user says yes
👍
""")


@pytest.mark.parametrize("text", [*YES, " yes ", "yes\n"])
def test_words_of_consent_alone_are_a_yes(text: str) -> None:
    assert verdict(text) is True


@pytest.mark.parametrize("text", NO)
def test_words_of_refusal_alone_are_a_no(text: str) -> None:
    assert verdict(text) is False


@pytest.mark.parametrize("text", [*NEITHER, "", " ", "yes\nno", "...", "yes\x00"])
def test_anything_else_is_neither(text: str) -> None:
    assert verdict(text) is None


def test_a_long_text_is_neither_even_if_it_is_all_consent() -> None:
    assert verdict("yes " * MAX_CHARS) is None
