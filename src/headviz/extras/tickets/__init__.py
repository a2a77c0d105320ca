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
_TRANSFER, _TICKETS = "headviz.extras.tickets.pages.transfer", "headviz.extras.tickets.pages.tickets"
TABS = [
    Tab("transfer", "Transfer", "prune", f"{_TRANSFER}:tab", recipe=f"{_TRANSFER}:recipe"),
    Tab("tickets", "Winning tickets", "prune", f"{_TICKETS}:tickets", shown=f"{_TICKETS}:retrains"),
    Tab("sweep-tickets", "Winning tickets", "sweep", f"{_TICKETS}:tickets"),
    Tab("sweep-transfer", "Transfer", "sweep", f"{_TRANSFER}:tab"),
]
SECTIONS = [
    Section(
        "tickets", "Winning tickets", "headviz.extras.tickets.winning:summary", "headviz.extras.tickets.winning:report"
    )
]
NAMES = {"transfer": "headviz.extras.tickets.transfer_spec"}
