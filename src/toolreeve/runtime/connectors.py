"""Connectors of a runtime: the configured tools and their secrets."""

import asyncio
import fcntl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from toolreeve.config import Configuration
from toolreeve.config.secrets import SecretSource
from toolreeve.connectors.catalogue import Selection, ServiceUrls, select
from toolreeve.core.errors import ConfigError
from toolreeve.core.secrets.redactor import Redactor

LOCK_SECONDS = 0.05


def select_connectors(configuration: Configuration) -> Selection:
    """Raises ConfigError for an unknown name in `connectors.enabled`."""
    source = configuration.secret_source

    def find_cheaply(name: str) -> str | None:
        """A secrets file that cannot be used stops no runtime that may not need it; whoever uses it is told."""
        try:
            return source.find_without_keyring(name)
        except ConfigError:
            return None

    return select(configuration.settings.connectors.enabled, source.find, find_cheaply)


def service_urls(configuration: Configuration) -> ServiceUrls:
    settings = configuration.settings.connectors
    return ServiceUrls(**{name: getattr(settings, f"{name}_url") for name in ServiceUrls.__slots__})


class RuntimeSecrets:
    """The capability `Context.secrets`. What it hands out is redacted from then on."""

    def __init__(self, source: SecretSource, redactor: Redactor) -> None:
        self._source = source
        self._redactor = redactor

    async def find(self, name: str) -> str | None:
        found = await asyncio.to_thread(self._source.find, name)
        if found is not None:
            self._redactor.learn([found])
        return found

    async def keep(self, name: str, value: str) -> None:
        self._redactor.learn([value])
        await asyncio.to_thread(lambda: self._source.keep(name, value))

    @asynccontextmanager
    async def exclusive(self, name: str) -> AsyncIterator[None]:
        with self._source.lock_file(name).open("a") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await asyncio.sleep(LOCK_SECONDS)  # not in a thread, which could not be cancelled
            yield

    def redact(self, values: Iterable[str]) -> None:
        self._redactor.learn(values)
