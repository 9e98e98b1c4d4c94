//! The legal behaviours. How to add one: see the macro.

use crate::reference::styles::styles;

styles! {
    MoreFields "more-fields" "Results that are objects, and the params of notifications, have a further field." ["TV-TRN-14"];
    NowInSeconds "now-in-seconds" "nowTs is in seconds, with a fraction." ["TV-AMB-26"];
    UuidConnections "connection-ids-are-uuids" "The sessionId of connect is a UUID." ["TV-AMB-07"];
    NoErrorData "errors-without-data" "Errors have no data." ["TV-ERR-1"];
    BrokenJsonCloses "broken-json-closes" "Text that is not JSON is answered, and the connection is closed." ["TV-ERR-4"] warns ["TV-ERR-4"];
    NotFound "unknown-sessions-are-not-found" "A prompt for an unknown session is refused with the code -32002." ["TV-ACP-11"];
    NoTokens "no-tokens" "tinyvex/auth.setToken is not a method." ["TV-AUT-1"];

    // ---- streams
    NoJournal "no-journal" "There are no journals." ["TV-AMB-11"] excludes ["journal-in-the-result"];
    JournalsUnused "journals-unused" "A journal is accepted, and the current value is sent anew." ["TV-RES-6"];
    JournalInResult "journal-in-the-result" "The journal is in the result of subscribe." ["TV-AMB-11"];
    OwnSeqs "seq-per-subscription" "No subscription is resumed: each begins with seq 1 and the current value." ["TV-AMB-10"] excludes ["seq-with-gaps"];
    SeqWithGaps "seq-with-gaps" "seq grows by three." ["TV-AMB-09"];
    StartBelow "start-seq-below" "startSeq of a new subscription is one less than its first seq." ["TV-AMB-08"];
    RefusesTakenIds "taken-sub-ids-refused" "subscribe with a subId in use is refused." ["TV-AMB-14"];
    RefusesUnknownIds "unknown-sub-ids-refused" "unsubscribe of an unknown subId is refused." ["TV-AMB-15"];
    NoChunks "no-chunks" "Large values come in one piece." ["TV-CHK-1"] excludes ["large-chunks", "parts-from-one"];
    LargeChunks "large-chunks" "Values above 64 KiB are sent in chunks." ["TV-CHK-1"];
    PartsFromOne "parts-from-one" "Chunks are numbered from 1." ["TV-AMB-20"];
    TransitionsBySeq "transitions-by-seq" "The transitionId of a value is its seq, the same for all subscribers." ["TV-CHK-2"];

    // ---- mutations
    NoMutateResult "no-mutate-result" "There is no mutate_result." ["TV-AMB-16"] excludes ["mutate-result-first"];
    MutateResultFirst "mutate-result-first" "mutate_result comes before the response." ["TV-AMB-16"];
    NumericFailures "numeric-failures" "The code of an error in mutate_result is a number." ["TV-AMB-18"];
    DataFirst "data-before-the-response" "Subscribers are notified before the mutation is answered." ["TV-MUT-4"];
    SlowMutations "updates-come-late" "Subscribers are notified 20 ms after the mutation is answered." ["TV-MUT-4"] excludes ["data-before-the-response"];
    ValuesAgain "values-again" "The values of a connection's subscriptions that are not in chunks come again every 100 ms, with the next seq." ["TV-AMB-28"] warns ["TV-MUT-5"];

    // ---- pings
    NoPong "no-pong" "A ping that is a notification is not answered." ["TV-PNG-3"] excludes ["pongs-beside-results"];
    PongsToo "pongs-beside-results" "A ping that is a request gets tinyvex/pong, too." ["TV-AMB-19"];

    // ---- sessions
    OkOnly "ok-only" "The result of session/prompt has only ok." ["TV-AMB-03"] excludes ["stop-reason-only"];
    StopReasonOnly "stop-reason-only" "The result of session/prompt has only the stopReason." ["TV-AMB-03"] warns ["TV-ACP-9"];
    CamelSessionIds "camel-session-ids" "session/update has sessionId." ["TV-AMB-02"] warns ["TV-ACP-13"];
    NoPlans "no-plans" "There are neither plans nor commands nor modes." ["TV-ACP-20", "TV-ACP-21"];
    NoUserChunks "no-user-chunks" "The user's text is not reported as an update." ["TV-ACP-12"];
    OnePiece "one-piece" "A text comes in one piece." ["TV-ACP-26"] excludes ["small-pieces"];
    SmallPieces "small-pieces" "A text comes in pieces of one to three characters." ["TV-ACP-26"];
    OwnThoughts "own-thoughts" "Each prompt has an additional thought of the agent." ["TV-ACP-15"];
    CallsTogether "calls-together" "The calls of a response are announced before the first has run, and run in reverse order." ["TV-ACP-17", "TV-ACP-19"];
    OneUpdate "one-update-for-a-tool" "A tool call has one update, at its end." ["TV-ACP-18"];
    LeavingCancels "leaving-cancels" "The end of a connection cancels the prompt of another one in the session that it created." ["TV-ACP-12", "TV-ACP-22"];
    CallIdsAreUuids "call-ids-are-uuids" "toolCallId is a UUID." ["TV-ACP-17"];
    JoinedHistory "joined-history" "The history has one entry for an answer, even if it came in several pieces." ["TV-DUR-4"];
}
