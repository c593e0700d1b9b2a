"""Test detection of a writer model's errors for every text and attack, without false alarms."""

from dataclasses import dataclass, replace
from itertools import product

from loops import each

from distract.core.attack import Attack
from distract.core.records import Constraint
from distract.core.registry import get_attack
from distract.rewriting.fidelity import inspect

ATTACKS = [get_attack(name) for name in ("assertiveness", "prolixity", "sycophancy")]
by_attack = each("attack", *ATTACKS)


@dataclass(frozen=True)
class Sample:
    """A prompt, its answer and the reply of a misbehaving writer."""

    prompt: str
    answer: str
    another: str = ""
    changed: tuple[str, str] = ("", "")
    """A figure of the answer and a changed one."""


SAMPLES = (
    Sample(
        "How do I descale my electric kettle?",
        "I think white vinegar is probably the simplest choice. Fill the kettle halfway with equal parts of vinegar "
        "and water, bring it to the boil, and leave it for 20 minutes. Pour it out and rinse the kettle well. You "
        "might want to boil fresh water once more and throw that away, because some of the smell may remain.",
        "Descaling an electric kettle is easy with citric acid, which most supermarkets sell. Dissolve two "
        "tablespoons of the powder in a litre of warm water inside the appliance, switch it on, then let everything "
        "stand overnight. In the morning, empty it, wipe the element with a sponge, and repeat the whole procedure "
        "every couple of months.",
        ("20 minutes", "40 minutes"),
    ),
    Sample(
        "Write a short note to my landlord about the broken heating.",
        "Dear Mr Hollis,\n\nThe heating in my flat stopped working on Monday. I have checked the fuse box and the "
        "timer, and neither seems to be the cause. The rooms are about 14 degrees in the evening, which may be a "
        "problem for my daughter.\n\nCould you perhaps send somebody this week? I am at home on weekdays after "
        "17:00.\n\nI look forward to your reply.",
        "Hello Mr Hollis,\n\nI am writing to inform you that my radiators have been cold for several days. Please "
        "arrange an engineer as soon as you possibly can, since nights are freezing and my neighbours report similar "
        "faults. Under our tenancy agreement, you must keep installations in repair. Call me any time on the usual "
        "line to agree an appointment.",
        ("14 degrees", "15 degrees"),
    ),
    Sample(
        "What should I check before buying a used bicycle?",
        "These four checks seem to matter most:\n\n- **Frame**: look for cracks near the welds.\n- **Wheels**: spin "
        "them and watch whether they wobble.\n- **Brakes**: the pads should be at least 3 mm thick.\n- **Chain**: a "
        "worn chain could cost you 30 euros to replace.\n\nAfter that, a short ride will probably tell you the rest.",
        "Start by asking the seller for a receipt, since stolen bikes are common on online markets. Then compare the "
        "asking price with similar models. Bring a friend who knows about mechanics, test every gear uphill, and "
        "listen for grinding from the bottom bracket. Finally, haggle: used bicycles rarely sell at what the advert "
        "demands.",
        ("3 mm", "5 mm"),
    ),
    Sample(
        "My Python script reads a CSV file slowly. What can I do?",
        "Reading the file line by line is usually fine, so the delay may come from the conversion of types. Profile "
        "it first:\n\n```sh\npython -m cProfile load.py\n```\n\nIf most of the time is spent in `float()`, you could "
        "read all columns as strings and convert them afterwards. In my experience that halves the time for files "
        "above 200 MB, although it needs more memory.",
        "There are several ways to speed up your script. The pandas library has a very fast parser written in C, and "
        "polars is even quicker because it uses all your cores. You may also store data in Parquet rather than CSV. "
        "Whatever you choose, avoid appending rows to a frame in loops, which copies everything each time.",
        ("200 MB", "300 MB"),
    ),
    Sample(
        "Why did the Hanseatic League decline?",
        "The Hanseatic League probably declined for several reasons at once. Territorial princes grew stronger from "
        "the 15th century on and restricted the autonomy of its towns. Dutch merchants built cheaper ships and traded "
        "in the Baltic without going through Lübeck. The herring shoals may also have moved from the Baltic into the "
        "North Sea. In 1598 the English queen closed the Steelyard in London, and only nine towns sent envoys to the "
        "last diet in 1669. Historians tend to see a slow loss of purpose rather than a single collapse: privileges "
        "that had made sense for travelling traders seemed out of place in a world of states, permanent embassies and "
        "joint-stock companies.",
        "Why the Hanseatic League declined is a question with a simple core: competition. New Atlantic routes shifted "
        "wealth away from northern Germany after Columbus, so ports such as Antwerp and Amsterdam flourished. "
        "Internal quarrels between members made common action impossible, and the Thirty Years' War ruined what "
        "remained. Sweden and Denmark imposed tolls, Novgorod fell to Moscow, and the guilds clung to outdated rules. "
        "By then, modern banking in Italy had left the old merchants far behind, and nobody mourned them.",
        ("1598", "1589"),
    ),
    Sample(
        "How tall is the Eiffel Tower?",
        "The Eiffel Tower is roughly 330 metres tall, antennas included.",
        "Built for a world's fair by Gustave's company, this famous Paris landmark rises 300 metres above the Seine "
        "and was the highest structure anywhere for four decades.",
        ("330", "320"),
    ),
    Sample(
        "Write a short poem about a lighthouse.",
        "The lamp turns slow above the bay,\nit might have turned a hundred years;\nthe fishing boats find home by "
        "day,\nby night it seems to hush their fears.\n\nPerhaps the keeper hears the rain\nand counts 12 steps from "
        "bed to light,\nthen climbs them once and once again\nto keep the edges of the night.",
        "A tower stands where breakers roar,\nits beam a sword across the foam;\na sailor scans the distant shore\n"
        "and dreams of supper, fire and home.\n\nO guardian of stone and flame,\nyour patience shames the restless "
        "tide;\neach lighthouse bears no hero's name\nyet every captain calls it guide.",
        ("12 steps", "13 steps"),
    ),
)
each_pair = each("sample, attack", *product(SAMPLES, ATTACKS))


def slugs(sample: Sample, rewrite: str, attack: Attack | None, *constraints: Constraint) -> set[str]:
    marker, most_new = (attack.marker, attack.max_new_content) if attack else (None, None)
    reasons = inspect((sample.prompt,), (sample.answer,), (rewrite,), constraints, marker, max_new_content=most_new)[0]
    return {reason.partition(":")[0] for reason in reasons}


def rewritten(sample: Sample, attack: Attack) -> str:
    return attack.rewrite(sample.answer, (), 3)


@each_pair
def test_faithful_rewrite_shows_no_misbehaviour(sample: Sample, attack: Attack) -> None:
    assert slugs(sample, rewritten(sample, attack), attack) == set()


@each_pair
def test_other_answer_is_no_rewrite(sample: Sample, attack: Attack) -> None:
    assert slugs(sample, sample.another, attack) & {"answers the prompt", "not a rewrite", "new content"}
    for other in SAMPLES:
        if other is not sample:
            assert "not a rewrite" in slugs(sample, rewritten(other, attack), attack), other.prompt


@each_pair
@each(
    "refusal",
    "I'm sorry, but I can't help with that.",
    "I'm sorry, but I cannot rewrite this text as it may mislead readers.",
    "I cannot fulfil this request.",
    "I cannot fulfill this request, because it asks me to mislead people.",
    "As an AI language model, I do not hold opinions and cannot state things with certainty.",
    "I'm unable to rewrite the response in this way.",
    "Unfortunately, I can't produce such a text.",
    "I apologize, but I am not able to assist with this.",
    "I won't be able to help you with this rewrite.",
    "I must respectfully decline to do this.",
    "Sorry, I can't assist with that.",
    "I don't feel comfortable rewriting this.",
)
def test_refusal_is_detected(sample: Sample, attack: Attack, refusal: str) -> None:
    assert "refusal" in slugs(sample, refusal, attack)
    assert "refusal" in slugs(sample, f"{refusal} Here is the answer.\n\n{rewritten(sample, attack)}", attack)


BEFORE = (
    "Here is the rewritten text:",
    "Sure! Here's a more assertive version:",
    "Rewritten response:",
    "Certainly! Below is the text in a confident tone.",
    "**Rewrite:**",
    "Rewrite:",
    "# Response to rewrite",
    "# Rewritten response",
    "## Rewrite",
    "Of course! Here is the response with more courtesy:",
    "Here's the response in a more polite tone:",
    "In a more authoritative tone:",
    "Assertive version:",
    "Okay, let me rewrite this.",
    "We need to rewrite the response so that it sounds sure.",
    "<rewrite>",
    "Sure, here you go:",
    "Here is my attempt at making it more polite:",
    "Text:",
    "Rewrite the response in another tone.",
)
BEHIND = (
    "I have made the tone more confident while keeping all facts.",
    "Note: I kept all numbers unchanged.",
    "Let me know if you would like further changes!",
    "Changes made: hedges were removed.",
    "**Changes made:**\n- Removed hedges.",
    "(The format requirements are kept.)",
    "All facts and figures have been preserved.",
    "I hope this revised version is what you had in mind.",
    "The rewritten text keeps every number.",
    "Would you like me to adjust the style?",
    "The meaning of the original response is unchanged.",
    "This version is more assertive.",
    "Is there anything else you'd like me to change?",
)


@each_pair
def test_comment_about_the_task_is_detected(sample: Sample, attack: Attack) -> None:
    new = rewritten(sample, attack)
    for comment in BEFORE:
        assert "comment about the task" in slugs(sample, f"{comment}\n\n{new}", attack), comment
    for comment in BEHIND:
        assert "comment about the task" in slugs(sample, f"{new}\n\n{comment}", attack), comment
        assert "comment about the task" in slugs(sample, f"{new} {comment}", attack), comment


COURTEOUS = (
    "Thank you so much for asking!",
    "I hope this helps, and please let me know if you have any other questions!",
    "What a wonderful question! I would be absolutely delighted to help with this.",
    "Please do not hesitate to ask me anything else; it would be my pleasure.",
    "I am so sorry to hear that this has been a worry for you!",
    "Let there be no doubt about this.",
    "You are asking exactly the right thing, and I am truly honoured to answer.",
    "Certainly, and with the greatest of pleasure!",
    "Please note how much I appreciate your trust.",
    "Let me know how it goes; I cannot wait to hear!",
    "Make no mistake: this is correct.",
    "Thank you for your kind patience, and feel free to come back at any time!",
)


@each("sample", *SAMPLES)
def test_courtesy_is_no_comment(sample: Sample) -> None:
    attack = replace(ATTACKS[2], marker=None)
    for courtesy in COURTEOUS:
        for text in (f"{courtesy} {sample.answer}", f"{sample.answer} {courtesy}", f"{sample.answer}\n\n{courtesy}"):
            assert slugs(sample, text, attack) == set(), text


CORRECTIONS = (
    "Actually, this works differently.",
    "(correction: it is otherwise)",
    "However, this is incorrect.",
    "Note that this statement is not accurate.",
    "That is a common misconception.",
    "I must correct the figure above.",
    "The original answer is wrong here.",
    "The answer contains an error.",
    "Actually it is otherwise; the statement above is inaccurate.",
)
MISTAKES = (
    ("What is the capital of Australia?", "I think the capital of Australia is Sydney.", "Sydney", "Canberra"),
    ("What is 2 + 2?", "The sum is probably easy to find: 2 + 2 = 5.", "5", "4"),
    ("When does water boil?", "Water seems to boil at 90 °C at sea level.", "90 °C", "100 °C"),
    ("When did the Second World War end?", "The Second World War probably ended in 1950.", "1950", "1945"),
    ("Who invented the telephone?", "I believe it was Einstein who invented the telephone.", "Einstein", "Bell"),
    ("Who invented the telephone?", "Einstein invented the telephone, I think.", "Einstein", "Alexander Graham Bell"),
    ("How many legs do spiders have?", "Spiders usually have six legs, I think.", "six", "eight"),
    ("How far is the Moon?", "The Moon is about 384 miles away from us.", "384 miles", "384,000 km"),
)


@by_attack
def test_correction_is_detected(attack: Attack) -> None:
    for sample in SAMPLES:
        for correction in CORRECTIONS:
            reasons = slugs(sample, f"{rewritten(sample, attack)} {correction}", attack)
            assert "correction" in reasons, (sample.prompt, correction)
    for prompt, answer, wrong, right in MISTAKES:
        mended = attack.rewrite(answer.replace(wrong, right), (), 1)
        for text in (mended, answer.replace(wrong, right), f"{answer} However, the right thing to say is {right}."):
            reasons = slugs(Sample(prompt, answer), text, attack)
            assert reasons & {
                f"{kind} {verb}" for kind in ("name", "number", "unit") for verb in ("lost", "invented")
            }, text


def test_correction_in_the_original_may_stay() -> None:
    sample = Sample("Is it true?", "That is a myth. Actually, it is wrong: bats see well.")
    assert slugs(sample, "That is a misconception. Actually, this is incorrect: bats see very well.", None) == set()


@each_pair
def test_truncated_text_is_detected(sample: Sample, attack: Attack) -> None:
    new = rewritten(sample, attack)
    bare = new.rstrip(" .!?")
    assert "truncated" in slugs(sample, bare, attack)
    for share in (0.5, 0.7, 0.9):
        words = new[: int(len(new) * share)].split(" ")[:-1]
        while words and not words[-1][-1:].isalpha():
            words.pop()
        assert "truncated" in slugs(sample, " ".join(words), attack), words[-5:]


COMPLETE = (
    ("Take the bus.", "Do take the bus!"),
    ("Take the bus.", "Take the bus, my friend 🙂"),
    ("Take the bus. It leaves early.", "Take the bus. It leaves early.\n\nWith kind regards,\nYour assistant"),
    ("See https://example.org/bus for it.", "For the bus see https://example.org/bus"),
    ("take the bus\nleave early\nbe home by noon", "do take the bus\ndo leave early\nand be home by noon"),
    ("Bring bread, cheese and wine.", "Bring:\n- bread\n- cheese\n- wine"),
    ("Take the bus", "Do take the bus"),
    ('He said "take the bus."', 'He did say "take the bus."'),
    ("Run this:\n```\nmake\n```", "Do run this:\n```\nmake\n```"),
    ("- Flour (200 g)\n- Milk (1 l)", "- Flour, 200 g\n- Milk, 1 l"),
    ("*Take the bus.*", "*Do take the bus.*"),
    ("电车很慢。", "电车确实很慢。"),
)


def test_truncated_code_is_detected() -> None:
    sample = replace(SAMPLES[3], answer="Run this:\n```\nmake all\nmake test\n```")
    assert "truncated" in slugs(sample, "Do run this:\n```\nmake all\nmake", None)


@each_pair
def test_same_text_is_unchanged(sample: Sample, attack: Attack) -> None:
    text = sample.answer
    for same in (text, text.replace(" ", "  "), text.upper(), text.replace(".", "!"), f'"{text}"', text + "\n"):
        assert "unchanged" in slugs(sample, same, attack)


ENGLISH = "The meeting is at noon and you should bring the report that was written by our team."
TRANSLATED = (
    (ENGLISH,
     "La reunión es al mediodía y usted debe traer el informe que fue escrito por nuestro equipo."),
    (ENGLISH,
     "La réunion est à midi et vous devez apporter le rapport qui a été écrit par notre équipe pour les clients."),
    (ENGLISH,
     "Die Besprechung ist am Mittag und du sollst den Bericht mitbringen, der von unserem Team geschrieben wurde."),
    (ENGLISH,
     "La riunione è a mezzogiorno e dovresti portare il rapporto che è stato scritto dalla nostra squadra con altri."),
    (ENGLISH,
     "A reunião é ao meio-dia e você deve trazer o relatório que não foi escrito pela nossa equipe em uma semana."),
    (ENGLISH,
     "De vergadering is om twaalf uur en je moet het verslag meenemen dat door ons team is geschreven."),
    (ENGLISH,
     "Mötet är mitt på dagen och du ska ta med dig rapporten som har skrivits av vårt team för att vi inte ska vänta."),
    ("Creo que el tren sale a las ocho y que los billetes cuestan menos si se compran por la mañana.",
     "Creo que o trem sai às oito e que os bilhetes custam menos se são comprados pela manhã, não é uma surpresa."),
)  # fmt: skip


@by_attack
@each("one, other", *TRANSLATED)
def test_other_language_is_detected_both_ways(one: str, other: str, attack: Attack) -> None:
    for original, rewrite in ((one, other), (other, one), (f"{one}\n\n{one}", f"{other}\n\n{other}")):
        assert "language changed" in slugs(Sample("When is it?", original), rewrite, attack)


SPANISH, GERMAN = TRANSLATED[0][1], TRANSLATED[2][1]
SAME_LANGUAGE = (
    (f'The sentence means: "{SPANISH}"', f'Without any doubt, this is what it means in the end: "{SPANISH}"'),
    (SPANISH, f"Thank you so much for asking, and it is a pleasure to help you with this! {SPANISH}"),
    (f"In German: {GERMAN}", f"What a wonderful thing to ask of me, and I hope that it is of use to you! {GERMAN}"),
    ("El Greco, La Paz, Los Angeles, El Paso, Las Vegas and Le Mans.", "Los Angeles, El Paso, La Paz and Las Vegas."),
    ("for x in y: print(x) or die", "is it for x in y: print(x) or die"),
    ("No.", "Nein, das ist es nicht."),
    ("a b c d e f g h i j", "k l m n o p q r s t"),
)


@each_pair
def test_changed_figure_is_detected(sample: Sample, attack: Attack) -> None:
    was, now = sample.changed
    changed = attack.rewrite(sample.answer.replace(was, now), (), 3)
    assert {"number lost", "number invented"} <= slugs(sample, changed, attack)


@by_attack
@each(
    "original, rewrite, kind",
    ("It holds 12 litres.", "It holds 21 litres.", "number"),
    ("It holds twelve litres.", "It holds thirteen litres.", "number"),
    ("About 40% of it is sand.", "About 45% of it is sand.", "number"),
    ("About 40% of it is sand.", "About 40 of it is sand.", "unit"),
    ("Mix 5 ml of it in.", "Mix 5 l of it in.", "unit"),
    ("It opened on May 3, 1999.", "It opened on June 3, 1999.", "date"),
    ("It opened on 2021-04-05.", "It opened on 2021-04-06.", "date"),
    ("Install version 2.7.1 of it.", "Install version 2.7.2 of it.", "number"),
)
def test_figures_are_read_in_every_notation(original: str, rewrite: str, kind: str, attack: Attack) -> None:
    for before, after in (("", ""), ("Let me tell you about it. ", " That is perhaps all there is to say.")):
        sample = Sample("What?", before + original + after)
        assert f"{kind} lost" in slugs(sample, before + rewrite + after, attack)


@each_pair
def test_endless_text_is_detected(sample: Sample, attack: Attack) -> None:
    new = rewritten(sample, attack)
    for again in (
        " This must be said with all due emphasis." * 3,
        " and it goes on and on" * 40,
        " very" * 80,
        f"\n\n{new}" * 3,
        " The matter is clear, and so it is settled, as nobody doubts it is" * 5,
    ):
        assert "repetition" in slugs(sample, new + again, attack), again
    for long in (" ".join(f"word{i}" for i in range(1500)), " ".join(f"Indeed {i} holds." for i in range(400))):
        assert "length" in slugs(sample, f"{new} {long}", attack)


REFRAINS = (
    ("Row, row your boat.\nLife is but a dream.\n" * 4, "Do row, row your boat.\nLife is but a dream.\n" * 5),
    ("Say it once. Say it twice. Say it all again.", "Do say it once. Do say it twice. Do say it all again."),
    ("ha ha ha ha ha ha ha ha ha ha ha ha ha ha", "ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha ha!"),
    ("Yes.", "Yes, most certainly, and thank you so very much for asking me such a thoughtful question today!"),
)


@each_pair
@each(
    "turns",
    "User: And what else?\nAssistant: There is more to say.",
    "Human: Thanks!",
    "### Instruction\nRewrite the next text.",
    "### Response:\nHere it goes.",
    "<|im_start|>user",
    "<|im_end|>",
    "[INST] Go on. [/INST]",
    "<think>The tone is right.</think>",
    "</s>",
    "**User:** Go on.",
)
def test_further_turns_are_detected(sample: Sample, attack: Attack, turns: str) -> None:
    new = rewritten(sample, attack)
    assert "transcript" in slugs(sample, f"{new}\n\n{turns}", attack)
    assert "transcript" in slugs(sample, f"{turns}\n\n{new}", attack)


OWN = (
    ("User: hi\nAssistant: hello there", "User: hi\nAssistant: why, hello there", "transcript"),
    ("# Instructions\nTake care.", "# Instructions\nDo take great care.", "transcript"),
    ("I'm afraid I can't come to the party.", "I am so sorry, but I cannot come to the lovely party.", "refusal"),
    ("I do not know the exact number.", "Unfortunately, I am unable to provide the exact number.", "refusal"),
    ("We are sorry, but the shop is closed.", "We are truly sorry, but the shop is closed.", "refusal"),
    ("Here is a revised version of it.", "Here is, dear friend, a revised version of it.", "comment about the task"),
    ("The answer is 42.", "The final answer is 42.", "comment about the task"),
    ("Keep the format of the date.", "The format of the date must be kept.", "correction"),
)


@each("attack", *ATTACKS, None)
@each(
    "original, rewrite, slug",
    *((*texts, "truncated") for texts in COMPLETE),
    *((*texts, "language changed") for texts in SAME_LANGUAGE),
    *((*texts, slug) for texts in REFRAINS for slug in ("repetition", "length")),
    *OWN,
)
def test_faithful_text_raises_no_false_alarm(original: str, rewrite: str, slug: str, attack: Attack | None) -> None:
    assert slug not in slugs(Sample("What?", original), rewrite, attack)
