"""What a request asks for: effects named by its words, by language.

Word stems only. A language without a list cannot be read: then nothing counts as asked for, nor as not asked for.
"""

import re
from functools import cache, lru_cache

from toolreeve.core.effects import EffectKind
from toolreeve.policy.flow.matching import fold

CREDENTIAL = "credential"
"""The effect of changing a password, a role or a profile."""
_STEMS = {
    "en": {
        EffectKind.SEND: "send mail email e-mail messag write repl respond forward tell notif inform invit share post "
        "publish submit contact text dm add upload answer push comment",
        EffectKind.SPEND: "pay transfer money buy purchas order book reserv refund bill rent subscri transaction",
        EffectKind.DELETE: "delet remov cancel eras clear drop discard clean kick revok uninvit",
        CREDENTIAL: "password passphrase credential permission access role profile address account",
        EffectKind.WRITE: "creat add make writ schedul put sav append set updat chang reschedul mov adjust edit remind "
        "plan new record fix implement refactor renam merg install build",
    },
    "de": {
        EffectKind.SEND: "send schick mail schreib antwort nachricht teil weiterleit informier einlad lad post poste "
        "veröffentlich sag",
        EffectKind.SPEND: "zahl überweis kauf bestell buch reservier rechnung geld miete",
        EffectKind.DELETE: "lösch entfern storn abbrech absag leer verwerf",
        CREDENTIAL: "passwort kennwort berechtigung zugang zugriff rolle profil adresse konto",
        EffectKind.WRITE: "erstell leg mach schreib plan setz speicher änder verschieb aktualisier füg trag bearbeit",
    },
    "fr": {
        EffectKind.SEND: "envo mail écri répond transf inform invit partag publi dis contact",
        EffectKind.SPEND: "pay virement vire achet command réserv factur loyer rembours",
        EffectKind.DELETE: "supprim annul efface retir vide",
        CREDENTIAL: "mot permission accès rôle profil adresse compte",
        EffectKind.WRITE: "cré ajout fais écri planifi mets enregistr modifi déplac chang",
    },
    "es": {
        EffectKind.SEND: "envi mand correo escrib respond reenv inform invit compart public di contact",
        EffectKind.SPEND: "pag transfi transfer compr pide reserv factur alquiler",
        EffectKind.DELETE: "borr elimin cancel quit vací",
        CREDENTIAL: "contraseña permiso acceso rol perfil dirección cuenta",
        EffectKind.WRITE: "cre añad agreg haz escrib program pon guard modific mueve cambi",
    },
}
_FUNCTION_WORDS = {
    "en": "the a an to of in on at is are was for my me you i and or this that it can could please with what how "
    "who when did do does have has".split(),
    "de": "der die das und ich du mir mich bitte ein eine einen den dem mit für ist sind von zu im auf was wie "
    "wer wann kannst".split(),
    "fr": "le la les un une des et je tu moi me pour est sont de du à au dans sur que qui avec s'il mon ma mes".split(),
    "es": "el la los las un una y yo me por para es son de del a en que con mi mis al favor puedes".split(),
}
_TOKEN = re.compile(r"[^\W\d_']+")


@lru_cache(maxsize=256)
def language_of(text: str) -> str | None:
    """The language with most of its function words in the text; None if there is none, and English for a few words."""
    found = _TOKEN.findall(fold(text))
    counts = {name: sum(found.count(word) for word in listed) for name, listed in _FUNCTION_WORDS.items()}
    best = max(counts, key=lambda name: counts[name])
    if counts[best]:
        return best
    return "en" if text.isascii() else None


@cache
def _pattern(stems: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(stems.split())})")


@lru_cache(maxsize=1024)
def asks_for(request: str, effect: str) -> bool | None:
    """Whether the request asks for an effect of this kind. None if that cannot be read from it."""
    language = language_of(request)
    if language is None:
        return None
    stems = _STEMS[language].get(effect)
    return None if stems is None else _pattern(stems).search(fold(request)) is not None
