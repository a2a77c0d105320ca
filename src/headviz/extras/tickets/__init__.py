"""Winning tickets, the thesis's tables of them, and the transfer of masks to other tasks."""

from ...plugins import Command, Section, Tab

COMMANDS = [
    Command(
        "tickets",
        "winning tickets of finished runs, next to the published ones",
        "headviz.extras.tickets.thesis_tables",
        after="cache",
    ),
    Command(
        "transfer",
        "masks found on one task, given to the models of others",
        "headviz.extras.tickets.transfer_spec",
        after="tickets",
    ),
]
_TABS = "headviz.extras.tickets.pages.tabs"
TABS = [
    Tab("transfer", "Transfer", "prune", f"{_TABS}:tab", recipe=f"{_TABS}:recipe"),
    Tab("tickets", "Winning tickets", "prune", f"{_TABS}:tickets", shown=f"{_TABS}:retrains"),
    Tab("sweep-tickets", "Winning tickets", "sweep", f"{_TABS}:tickets"),
    Tab("sweep-transfer", "Transfer", "sweep", f"{_TABS}:tab"),
]
SECTIONS = [
    Section(
        "tickets", "Winning tickets", "headviz.extras.tickets.winning:summary", "headviz.extras.tickets.winning:report"
    )
]
NAMES = {"transfer": "headviz.extras.tickets.transfer_spec"}
