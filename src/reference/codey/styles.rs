//! The legal behaviours. How to add one: see the macro.

use crate::reference::styles::styles;

styles! {
    NoToolDeltas "no-tool-deltas" "The output of a tool comes only in ToolCompleted." ["CO-TL-10"];
    OneByOne "one-call-at-a-time" "The next call of a request is announced when the previous one has ended." ["CO-AMB-22"];
    RequestPerCall "request-per-call" "Each of several calls has a ToolRequest of its own." ["CO-TL-1"];
    CallsReversed "calls-reversed" "The calls of a request are listed, and begin, in reverse order." ["CO-TL-1", "CO-AMB-22"];
    NoRetries "no-retries" "A transient error is not retried." ["CO-RT-1"];
    ErrorEnds "error-ends-the-turn" "A failed turn ends with Error, without Finished." ["CO-AMB-17"] excludes ["apologizes"];
    Apologizes "apologizes" "Between the Error of a failed turn and its Finished comes a text of the agent." ["CO-AMB-17"];
    CancelByError "cancel-ends-in-error" "A cancelled turn ends with a non-fatal Error." ["CO-AMB-01"] excludes ["cancel-in-silence"];
    CancelInSilence "cancel-in-silence" "A cancelled turn ends without a message." ["CO-AMB-01"] warns ["CO-CA-3"];
    SmallPieces "small-pieces" "Text comes in pieces of one to three characters, long text in larger ones." ["CO-TX-2"] excludes ["one-piece"];
    OnePiece "one-piece" "Text comes in one piece." ["CO-TX-4"] warns ["CO-TX-4"];
    EmptyFirst "empty-first" "A text begins with an empty TextDelta." ["CO-TX-1"];
    NoThinking "no-thinking" "Thinking is not shown." ["CO-TX-5"];
    PlainSessionIds "plain-session-ids" "A session_id is not a UUID." ["CO-AMB-06"];
    WarnsAtOnce "warns-at-once" "Behind Connected comes an Error that is not fatal and answers nothing." ["CO-AMB-17"];
    ConnectedVersion "connected-version" "Connected has a version." ["CO-VR-1", "CO-AMB-07"];
    PendingBackground "pending-background" "An entry of pending_approvals has background." ["CO-AMB-16"];
    NamedAgent "named-agent" "The agent has a name." ["CO-GS-2"];
    IdleWhileAsking "idle-while-asking" "is_streaming is false while a call awaits approval." ["CO-GS-5"];
    NullTimes "null-timestamps" "The timestamps of History are null." ["CO-AMB-15"] warns ["CO-GH-2"] excludes ["local-timestamps"];
    LocalTimes "local-timestamps" "The timestamps of History have an offset and a fraction." ["CO-GH-2"];
    UnknownCallIgnored "unknown-calls-ignored" "A decision about a call that is not pending is ignored." ["CO-AMB-03"] warns ["CO-TL-24", "CO-TL-27"];
    StartedThenDenied "started-then-denied" "ToolStarted comes before the ToolError of a call that a rule denies." ["CO-AMB-11"] warns ["CO-TL-14"];
    LongCallIds "long-call-ids" "A call_id is long, and contains blanks and punctuation." ["CO-TL-2"] excludes ["digit-call-ids"];
    DigitCallIds "digit-call-ids" "A call_id consists of digits." ["CO-TL-2"];
    AgentFallsBack "unknown-agent-falls-back" "A message to an unknown agent goes to the first one." ["CO-AMB-09"];
    Queues "queues-messages" "A SendMessage during a turn becomes a later turn." ["CO-AMB-02"];
    NoCaches "no-caches" "The cache counters are always 0." ["CO-FN-5"];
    LateBackground "background-starts-late" "A background call starts 10 ms later, during the turn or after it." ["CO-AMB-20"];
    DenialEnds "denial-ends-the-turn" "After a denial the turn ends without asking the model again." ["CO-TL-12"] excludes ["one-call-at-a-time"];
    FailureIsFatal "failures-are-fatal" "A failure of the provider ends the session." ["CO-AMB-17", "CO-AMB-18", "CO-ER-7"];
    AbsenceIsTold "absence-is-told" "A missing note is reported as a result." ["CO-TL-17"];
    OtherWords "other-words" "Errors have other texts." ["CO-ER-1", "CO-TL-18"];
    Formatted "formatted-results" "The content of ToolCompleted is wrapped in other text." ["CO-AMB-13"];
    CancelledLeavesNoTrace "cancelled-leaves-no-trace" "A cancelled turn is not in History." ["CO-CA-1", "CO-GH-3"] excludes ["queues-messages"];
    CountsOn "counts-on" "output_tokens starts at the usage of an earlier run." ["CO-AMB-14"];
    DeathLeavesOpen "fatal-stays-open" "After a fatal Error the connection stays, and commands are answered with Errors." ["CO-AMB-18"];
}
