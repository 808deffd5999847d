"""The encoders that a person may choose on the page, loaded when they are first used."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from weakref import WeakValueDictionary

from ulr.encoders import ENCODERS, AnyEncoder, Encoder, load_encoder
from ulr.errors import EncoderError

_MOST_KEPT = 3  # beside the server's own; a session keeps that of its result alive


@dataclass(frozen=True)
class EncoderChoice:
    """An encoder that is installed; ``auto`` is the most accurate combination."""

    name: str
    about: str
    languages: tuple[str, ...]


class Encoders:
    """Loads encoders by name; no encoder is in memory twice, and few are without a session."""

    def __init__(self, spec: str | AnyEncoder) -> None:
        own = load_encoder(spec)
        if not isinstance(own, Encoder):
            raise EncoderError(
                f"the page keeps vectors of texts, but {spec!r} scores pairs of text and "
                "label; choose another encoder."
            )
        self.name = getattr(own, "spec", None) or type(own).__name__
        kind = ENCODERS.get(spec) if isinstance(spec, str) else None
        about = "the encoder of this server" if kind is None else kind.about
        languages = tuple(getattr(own, "languages", None) or ())
        self.choices = {self.name: EncoderChoice(self.name, about, languages)} | {
            name: EncoderChoice(name, kind.about, kind.languages)
            for name, kind in ENCODERS.items()
            if kind.load and kind.installed and not kind.scores_pairs and name != spec
        }
        self._own, self._lock = own, Lock()
        self._kept: OrderedDict[str, Encoder] = OrderedDict()
        self._alive: WeakValueDictionary[str, Encoder] = WeakValueDictionary()

    def check(self, name: str | None) -> str:
        """The name of an encoder that can be loaded; the server's own for None."""
        if name is None or name in self.choices:
            return name or self.name
        raise EncoderError(f"encoder must be one of {', '.join(self.choices)}; got {name!r}.")

    def get(self, name: str) -> Encoder:
        """An encoder by its name, loaded if it is not in memory."""
        if name == self.name:
            return self._own
        with self._lock:  # two sessions must not load the same one
            found = self._alive.get(name)
            if found is None:
                loaded = load_encoder(name)
                assert isinstance(loaded, Encoder)  # others are no choice
                self._alive[name] = found = loaded
            self._kept[name] = found
            self._kept.move_to_end(name)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return found
