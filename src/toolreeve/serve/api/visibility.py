"""Which calls, questions and events a credential may see.

What was done with the credential itself, whole; what else its user did in this workspace, without arguments; all the
rest only with the scope `approve` or `manage`. Every endpoint that reads the record asks here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from toolreeve.core.errors import ErrorCode
from toolreeve.record.audit import Filter
from toolreeve.serve.api.problems import Problem
from toolreeve.serve.api.running import own_sessions
from toolreeve.serve.tokens import Credential


@dataclass(frozen=True, slots=True)
class RecordView:
    """`workspace` is that of the server, as the record has it."""

    credential: Credential
    workspace: str

    def includes(self, about: Mapping[str, Any]) -> bool:
        """Whether it may know of a call or question with this user and workspace."""
        own = self.credential.principal.user
        return self.credential.sees_all or (about.get("user"), about.get("workspace")) == (own, self.workspace)

    def reveals(self, about: Mapping[str, Any]) -> bool:
        """Whether it may see the arguments and the result, too."""
        made = str(about.get("session") or "").startswith(own_sessions(self.credential))
        return self.credential.sees_all or (made and self.includes(about))

    def narrow(self, wanted: Filter) -> Filter:
        """The filter for what it may know of. Raises Problem if others are asked about."""
        if self.credential.sees_all:
            return wanted
        own = self.credential.principal.user
        if wanted.user not in (None, own) or wanted.workspace not in (None, self.workspace):
            detail = "only a credential with the scope approve or manage may read about calls of others"
            raise Problem(403, detail, code=ErrorCode.PERMISSION)
        return replace(wanted, user=own, workspace=self.workspace)
