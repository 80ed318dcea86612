"""The table of the operator's operations."""

from functools import partial
from typing import Final

from antiphon.server.admin import audit, conversations, people, recordings, sessions, timeline, tools
from antiphon.server.deps import ToolChanges
from antiphon.server.energy import EnergyState
from antiphon.server.operation import Operation
from antiphon.server.recordings import ADMIN_PATH, MEDIA_TYPE, REFUSALS
from antiphon.server.refusals import RefusalCode

_BAD: Final = (RefusalCode.BAD_REQUEST,)
_GONE: Final = (RefusalCode.NOT_FOUND,)

_Admin: Final = partial(Operation, is_admin=True)

ADMIN_OPERATIONS: Final = (
    _Admin(
        "GET",
        "/api/admin/status",
        "Tell who asks, and which process answers. All of `/api/admin` needs an admin token.",
        handle=sessions.show_status,
        answer=sessions.AdminStatus,
    ),
    _Admin(
        "GET",
        "/api/admin/sessions",
        "List the sessions of all users and processes.",
        handle=sessions.list_sessions,
        answer=sessions.SessionPage,
        query=sessions.SessionsQuery,
        refusals=_BAD,
    ),
    _Admin(
        "GET",
        "/api/admin/conversations",
        "List the conversations of all users.",
        handle=conversations.list_all_conversations,
        answer=conversations.AdminConversationPage,
        query=conversations.AdminConversationsQuery,
        refusals=_BAD,
    ),
    _Admin(
        "GET",
        "/api/admin/conversations/{id}",
        "Get the timeline of any user's conversation. This is written into the audit.",
        handle=timeline.show_timeline,
        answer=timeline.Timeline,
        query=timeline.TimelineQuery,
        refusals=_BAD + _GONE,
    ),
    _Admin(
        "GET",
        ADMIN_PATH,
        "Hear a recording of any user. Ranges of bytes are supported. Each listening is written into the audit once.",
        handle=recordings.play_any_recording,
        answer=MEDIA_TYPE,
        refusals=REFUSALS,
    ),
    _Admin(
        "GET",
        "/api/admin/audit",
        "Search the audit of all users.",
        handle=audit.search_audit,
        answer=audit.AuditPage,
        query=audit.AuditQuery,
        refusals=_BAD,
    ),
    _Admin(
        "GET",
        "/api/admin/users",
        "List the users, and who is blocked.",
        handle=people.list_users,
        answer=people.UserList,
    ),
    _Admin(
        "DELETE",
        "/api/admin/blocks",
        "Unblock a user.",
        handle=people.unblock_user,
        answer=None,
        query=people.BlockQuery,
        refusals=_BAD + _GONE,
    ),
    _Admin(
        "GET",
        "/api/admin/tokens",
        "List the access tokens, without the tokens themselves.",
        handle=people.list_tokens,
        answer=people.TokenList,
    ),
    _Admin(
        "DELETE",
        "/api/admin/tokens/{id}",
        "Revoke an access token.",
        handle=people.revoke_token,
        answer=None,
        refusals=_GONE,
    ),
    _Admin(
        "GET",
        "/api/admin/energy",
        "Tell the models of each level of energy, and the levels of the sessions of all servers.",
        handle=sessions.show_all_energy,
        answer=EnergyState,
    ),
    _Admin(
        "GET",
        "/api/admin/tools",
        "List the tools that this process has loaded.",
        handle=tools.list_loaded_tools,
        answer=tools.LoadedTools,
    ),
    _Admin(
        "GET",
        "/api/admin/tools/changes",
        "Compare the loaded tools with those that their folders would give now. Nothing is changed.",
        handle=tools.compare_tools,
        answer=ToolChanges,
    ),
    _Admin(
        "GET",
        "/api/admin/kb",
        "Count the records of the knowledge base.",
        handle=tools.count_knowledge,
        answer=tools.KnowledgeCounts,
    ),
)
