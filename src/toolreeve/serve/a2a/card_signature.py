"""Signs agent cards (JWS over their canonical JSON) and publishes the key.

A card is signed once, so that its ETag stays the same: not every kind of signature is deterministic.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from a2a.types import AgentCard
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from toolreeve.core import json
from toolreeve.core.errors import ConfigError

JWKS = "/.well-known/jwks.json"
MAX_CARDS = 64
_SETTING = "a2a.card_key"
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_KINDS = (
    "an RSA key, an Ed25519 key or one on a NIST curve: openssl ecparam -name prime256v1 -genkey -noout -out card.pem"
)


class CardSigner:
    def __init__(self, file: str) -> None:
        """Raises ConfigError."""
        try:
            self._key: Any = load_pem_private_key(Path(file).read_bytes(), None)
        except (OSError, ValueError, TypeError) as problem:
            raise ConfigError(f"the key cannot be read: {problem}", source=_SETTING, fix=f"name {_KINDS}") from None
        self._algorithm = _algorithm(self._key)
        self._id, self._public = _describe(self._key, self._algorithm)
        self._signed: dict[bytes, AgentCard] = {}

    def sign(self, card: AgentCard, base: str) -> AgentCard:
        """`base` is our own address, where the key is published; empty over gRPC."""
        from a2a.utils.signing import create_agent_card_signer

        unsigned = card.SerializeToString(deterministic=True)
        if unsigned not in self._signed:
            header: Any = {"alg": self._algorithm, "typ": "JOSE", "kid": self._id}
            if base:
                header["jku"] = f"{base}{JWKS}"
            if len(self._signed) >= MAX_CARDS:
                self._signed.pop(next(iter(self._signed)))
            self._signed[unsigned] = create_agent_card_signer(self._key, header)(card)
        return self._signed[unsigned]

    def keys(self) -> Mapping[str, Any]:
        """The JSON Web Key Set of the public key."""
        return {"keys": [{**self._public, "kid": self._id, "alg": self._algorithm, "use": "sig"}]}


def _algorithm(key: Any) -> str:
    match key:
        case ec.EllipticCurvePrivateKey() if key.curve.name in _CURVES:
            return _CURVES[key.curve.name]
        case rsa.RSAPrivateKey():
            return "RS256"
        case ed25519.Ed25519PrivateKey():
            return "EdDSA"
    raise ConfigError("no card can be signed with this kind of key", source=_SETTING, fix=f"name {_KINDS}")


def _describe(key: Any, algorithm: str) -> tuple[str, Mapping[str, Any]]:
    """The key's id, which is its thumbprint (RFC 7638), and its public part."""
    from jwt.algorithms import get_default_algorithms

    public: dict[str, Any] = get_default_algorithms()[algorithm].to_jwk(key.public_key(), as_dict=True)
    needed: dict[str, Any] = {name: public[name] for name in ("crv", "e", "kty", "n", "x", "y") if name in public}
    return hashlib.sha256(json.dumps(needed)).hexdigest()[:32], needed
