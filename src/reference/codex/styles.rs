//! The legal behaviours.

use crate::reference::styles::styles;

styles! {
    // ---- JSON-RPC
    OwnWords "own-words" "Refusals have other messages." ["CX-RPC-4"];
    ErrorData "error-data" "Refusals have data." ["CX-RPC-4"];
    SilentAboutTheUnreadable "silent-about-the-unreadable" "An unreadable message is ignored." ["CX-AMB-03"] warns ["CX-RPC-10", "CX-RPC-11"];
    BinaryCloses "binary-closes" "A binary frame ends the connection." ["CX-AMB-01"];
    TextIds "text-ids" "The ids of the server's requests are strings." ["CX-RPC-6"];
    MoreFields "more-fields" "Results and params have an additional field." ["CX-RPC-3"];
    NullsAreLeftOut "nulls-left-out" "Fields of threads and items that are null are omitted." ["CX-THR-2"];

    // ---- threads
    StartedFirst "started-first" "thread/started comes before the answer of thread/start." ["CX-THR-4"];
    ResumeNeedsATurn "resume-needs-a-turn" "A thread without turns cannot be resumed." ["CX-AMB-19"] warns ["CX-RES-1"];
    ResumeWithoutTurns "resume-without-turns" "The answer of thread/resume has no turns." ["CX-AMB-07"] warns ["CX-RES-7"];
    LongCursors "long-cursors" "Cursors are long." ["CX-LST-1"];
    ArchivedIsNotNamed "archived-is-not-named" "An archived thread cannot be named." ["CX-NAM-6"];
    UnarchivesAnything "unarchives-anything" "thread/unarchive of a thread that is not archived succeeds." ["CX-ARC-8"] warns ["CX-ARC-8"];

    // ---- turns and items
    OneTurnOnly "one-turn-only" "turn/start during a turn is refused." ["CX-AMB-09"];
    InterruptsNothing "interrupts-nothing" "turn/interrupt of a turn that is not in flight is answered with {}." ["CX-AMB-12"];
    SteerRefusesOverrides "steer-refuses-overrides" "turn/steer with overrides is refused." ["CX-AMB-11"];
    ItemsInTurns "items-in-turns" "turn/completed has the turn's items." ["CX-AMB-08"];
    NoUsageInTurns "no-usage-in-turns" "turn/completed has no usage." ["CX-AMB-10"];
    IdleAfterTheTurn "idle-after-the-turn" "The status changes after turn/completed." ["CX-STA-4"];
    FailedIsIdle "failed-is-idle" "A thread whose turn has failed is idle." ["CX-AMB-17"];
    NoWaitingFlag "own-flags" "The flag of a thread that waits for an approval has another name." ["CX-AMB-16"];
    OnePiece "one-piece" "A text comes in one piece." ["CX-ITM-5"] excludes ["small-pieces"];
    SmallPieces "small-pieces" "A text comes in pieces of one to three characters." ["CX-ITM-5"];
    RawReasoning "raw-reasoning" "Reasoning comes raw, not as a summary." ["CX-ITM-10"];

    // ---- approvals, files and commands
    AsksTheFirst "asks-the-first" "Of several clients, only the first gets the approval request." ["CX-AMB-15"] warns ["CX-APR-27"];
    NoAvailableDecisions "no-available-decisions" "A request does not list the decisions." ["CX-APR-22"];
    ChangesFirst "changes-first" "fs/changed comes before the answer to the request that changed the file." ["CX-FS-22"];
    FoldersBackwards "folders-backwards" "A directory is listed in reverse order." ["CX-FS-10"];
    WritesOfNothing "writes-of-nothing" "A write with neither data nor closeStdin succeeds." ["CX-EXE-20"] warns ["CX-EXE-20"];
}
