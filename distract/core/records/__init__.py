"""Plain records that modules exchange: frozen and slotted, with only small pure views as methods.

Vocabulary: a *case* is a prompt with the responses to it; an *original* response has ``attack`` None; a *rewrite* has
the author and severity of its original and the name of the attack that made it. Responses that break s format
constraints on purpose have ``severity`` s.
"""

from distract.core.records.cases import BASELINE as BASELINE
from distract.core.records.cases import Case as Case
from distract.core.records.cases import Constraint as Constraint
from distract.core.records.cases import Evidence as Evidence
from distract.core.records.cases import Lineage as Lineage
from distract.core.records.cases import Response as Response
from distract.core.records.requests import MAX_TOKENS as MAX_TOKENS
from distract.core.records.requests import NO_REPLY as NO_REPLY
from distract.core.records.requests import ORDINALS as ORDINALS
from distract.core.records.requests import Answer as Answer
from distract.core.records.requests import KeepText as KeepText
from distract.core.records.requests import Message as Message
from distract.core.records.requests import ParseFailure as ParseFailure
from distract.core.records.requests import Reply as Reply
from distract.core.records.requests import Request as Request
from distract.core.records.requests import Role as Role
from distract.core.records.requests import Slots as Slots
from distract.core.records.requests import dump_json as dump_json
from distract.core.records.requests import token_count as token_count
from distract.core.records.rewrites import CaseResult as CaseResult
from distract.core.records.rewrites import Rewrite as Rewrite
from distract.core.records.rewrites import slug as slug
from distract.core.records.rows import MIRROR as MIRROR
from distract.core.records.rows import PASS_MARK as PASS_MARK
from distract.core.records.rows import RESAMPLED as RESAMPLED
from distract.core.records.rows import UNCHANGED as UNCHANGED
from distract.core.records.rows import Judgment as Judgment
from distract.core.records.rows import Outcome as Outcome
from distract.core.records.rows import Row as Row
from distract.core.records.rows import Side as Side
