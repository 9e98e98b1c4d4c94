//! The deliberate defects, each with the requirements that it violates.

use crate::reference::Fault;

macro_rules! faults {
    ($($defect:ident $name:literal $title:literal [$($id:literal),*];)*) => {
        /// One defect. Consulted at the one place where it matters.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Defect { $($defect),* }

        /// All faults, in the order of the areas that they concern.
        pub(in crate::reference) const FAULTS: &[Fault] =
            &[$(Fault { name: $name, title: $title, violates: &[$($id),*] }),*];

        impl Defect {
            pub(super) fn named(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$defect),)* _ => None }
            }
        }
    };
}

faults! {
    BinaryFrames "binary-frames" "TextDelta is sent as a binary message." ["CO-CN-9"];
    PongInAnArray "pong-in-an-array" "Pong comes inside an array." ["CO-CN-9"];
    LowerCaseTypes "lower-case-types" "TextDelta is called text_delta." ["CO-CN-10"];
    UnlistedType "unlisted-type" "Turn statistics are sent under a type that is not in the list." ["CO-CN-10"];
    GreetsWhenSpokenTo "greets-when-spoken-to" "Connected comes only after the client's first message." ["CO-CN-4"];
    SpeaksBeforeGreeting "speaks-before-greeting" "A text comes before Connected." ["CO-CN-5"];
    GreetsTwice "greets-twice" "Connected comes twice." ["CO-CN-6"];
    EmptySessionId "empty-session-id" "session_id is empty." ["CO-CN-7"];
    SessionIdIsNumber "session-id-is-number" "session_id is a number." ["CO-CN-7"];
    SameSessionId "same-session-id" "All sessions have the same id." ["CO-CN-8"];
    DecidesForOthers "decides-for-others" "A decision is taken about a call of another session." ["CO-CN-12"];
    MissingContentIsTaken "missing-content-is-taken" "SendMessage without content starts a turn." ["CO-SM-2"];
    AnyContentIsTaken "any-content-is-taken" "Content that is no string is made one." ["CO-SM-3"];
    NullAgentIsRefused "null-agent-is-refused" "agent_id null is refused." ["CO-SM-5"];
    NamedAgentIsRefused "named-agent-is-refused" "agent_id may not be given." ["CO-SM-6"];
    SilentOnUnknownAgent "silent-on-unknown-agent" "A message to an unknown agent is dropped in silence." ["CO-SM-6"];
    AnyAgentIsTaken "any-agent-is-taken" "agent_id of a wrong type is passed over." ["CO-SM-7"];
    WearsOut "wears-out" "A session takes two turns and no third." ["CO-SM-8"];
    AsciiOnly "ascii-only" "Characters beyond ASCII are lost from the user's text." ["CO-SM-9"];
    SecondMessageCancels "second-message-cancels" "A message during a turn cancels the turn." ["CO-SM-12"];
    AgentIsText "agent-is-text" "agent_id of TextDelta is a string." ["CO-TX-1"];
    TextHasExtra "text-has-extra" "TextDelta has a field more." ["CO-TX-1"];
    PiecesPileUp "pieces-pile-up" "Each TextDelta repeats the text so far." ["CO-TX-2"];
    LosesPieces "loses-pieces" "A longer answer lacks a piece." ["CO-TX-2"];
    SwapsPieces "swaps-pieces" "In a longer answer two pieces change places." ["CO-TX-3"];
    WholeAnswers "whole-answers" "An answer comes as a whole, not in pieces." ["CO-TX-4"];
    ThoughtIsList "thought-is-list" "content of ThinkingDelta is a list." ["CO-TX-5"];
    ThinksAloud "thinks-aloud" "Thinking is sent as TextDelta." ["CO-TX-6"];
    TextAfterFinished "text-after-finished" "Text comes after Finished." ["CO-TX-8"];
    CallsAreEmpty "calls-are-empty" "ToolRequest lists no calls." ["CO-TL-1"];
    ParamsAreText "params-are-text" "params in ToolRequest is a string." ["CO-TL-2"];
    CallIdsRepeat "call-ids-repeat" "call_ids start anew with each turn." ["CO-TL-3"];
    RequestAfterAsking "request-after-asking" "ToolRequest comes after ToolAwaitingApproval, or not at all." ["CO-TL-4", "CO-TL-5"];
    ErrorOfAnotherCall "error-of-another-call" "ToolError bears the call_id of no call." ["CO-TL-4", "CO-TL-5"];
    NeverAsks "never-asks" "Guarded tools run without approval." ["CO-TL-6"];
    AskingLacksBackground "asking-lacks-background" "ToolAwaitingApproval has no background." ["CO-TL-7"];
    AsksWithOtherParams "asks-with-other-params" "The client is shown other params than the call's." ["CO-TL-8"];
    RunsBeforeDecision "runs-before-decision" "A guarded tool is asked about and runs at once." ["CO-TL-9"];
    ApprovedDoesNotRun "approved-does-not-run" "An approved call is reported as done but does not run." ["CO-TL-10"];
    NoStartAfterApproval "no-start-after-approval" "ToolStarted is left out after the client's approval." ["CO-TL-11"];
    StartsTwice "starts-twice" "ToolStarted comes twice." ["CO-TL-11"];
    RunsWhatIsDenied "runs-what-is-denied" "A denied call is reported as denied and runs." ["CO-TL-12"];
    AsksAboutAllowed "asks-about-allowed" "A tool that a rule allows is asked about." ["CO-TL-13"];
    AsksAboutDenied "asks-about-denied" "A call that a rule denies is asked about." ["CO-TL-14"];
    RunsDenied "runs-denied" "A call that a rule denies runs." ["CO-TL-14"];
    StartLacksName "start-lacks-name" "ToolStarted has no name." ["CO-TL-15"];
    StartsUnderAnotherName "starts-under-another-name" "ToolStarted names another tool." ["CO-TL-15"];
    OutputIsList "output-is-list" "content of ToolDelta is a list." ["CO-TL-16"];
    CompletedLacksContent "completed-lacks-content" "ToolCompleted has no content." ["CO-TL-17"];
    ToolErrorUnderAnotherName "tool-error-under-another-name" "ToolError has message instead of error." ["CO-TL-18"];
    EndsTwice "ends-twice" "ToolCompleted comes twice." ["CO-TL-19"];
    EndsInBothWays "ends-in-both-ways" "ToolError follows ToolCompleted." ["CO-TL-19"];
    NoEnd "no-end" "ToolCompleted is left out." ["CO-TL-19"];
    FailureIsSuccess "failure-is-success" "A tool that fails is reported as completed." ["CO-TL-20"];
    OutputBeforeStart "output-before-start" "A call's output begins before ToolStarted." ["CO-TL-21"];
    OutputAfterEnd "output-after-end" "Output comes after ToolCompleted." ["CO-TL-21"];
    SilentAfterTools "silent-after-tools" "After tool results the agent says nothing more." ["CO-TL-22"];
    OneDecisionForAll "one-decision-for-all" "One decision decides every pending call." ["CO-TL-23"];
    AnyCallIdIsTaken "any-call-id-is-taken" "A decision about an unknown call decides the oldest pending one." ["CO-TL-24"];
    SilentOnUnknownCall "silent-on-unknown-call" "A decision about an unknown call is passed over." ["CO-TL-24"];
    TruthyApproves "truthy-approves" "approved of any type approves." ["CO-TL-25"];
    SilenceApproves "silence-approves" "A decision without approved approves." ["CO-TL-25"];
    DecidesTheOldest "decides-the-oldest" "A decision without call_id decides the oldest pending call." ["CO-TL-26"];
    SecondDecisionCounts "second-decision-counts" "A later denial stops an approved call." ["CO-TL-27"];
    BackgroundUnmarked "background-unmarked" "A background call is not marked in ToolRequest." ["CO-FN-6", "CO-TL-28"];
    DisconnectRuns "disconnect-runs" "Pending calls run when the client goes." ["CO-TL-31"];
    AgentOfToolsVaries "agent-of-tools-varies" "ToolCompleted bears another agent_id." ["CO-TL-32"];
    NoFinished "no-finished" "Finished is never sent." ["CO-CA-3", "CO-FN-1"];
    FinishesTwice "finishes-twice" "Finished comes twice." ["CO-FN-1"];
    UsageIsText "usage-is-text" "output_tokens is a string." ["CO-FN-2"];
    UsageLacksCache "usage-lacks-cache" "usage has no cache_read_tokens." ["CO-FN-2"];
    TokensStartAnew "tokens-start-anew" "output_tokens counts the turn, not the session." ["CO-FN-3"];
    ContextIsZero "context-is-zero" "context_tokens is 0." ["CO-FN-4"];
    ContextShrinks "context-shrinks" "context_tokens is what is left of the window." ["CO-FN-4"];
    ThinksAfterFinished "thinks-after-finished" "Thinking comes after Finished." ["CO-FN-6"];
    AttemptZero "attempt-zero" "Attempts are counted from 0." ["CO-RT-1"];
    AttemptsStand "attempts-stand" "Every attempt is the first." ["CO-RT-2"];
    CancelIsIgnored "cancel-is-ignored" "Cancel has no effect." ["CO-CA-1", "CO-CA-2", "CO-CA-3", "CO-CA-4", "CO-CA-6"];
    CancelSparesTools "cancel-spares-tools" "Cancel lets a running tool run to its end." ["CO-CA-2"];
    CancelEndsInSilence "cancel-ends-in-silence" "A cancelled turn just stops." ["CO-CA-3"];
    CancelLeavesBusy "cancel-leaves-busy" "After Cancel the session refuses new turns." ["CO-CA-4"];
    IdleCancelIsFatal "idle-cancel-is-fatal" "Cancel with nothing under way ends the session." ["CO-CA-5"];
    CancelKeepsPending "cancel-keeps-pending" "A cancelled call stays in pending_approvals." ["CO-CA-6"];
    HistoriesTwice "histories-twice" "GetHistory is answered twice." ["CO-GH-1"];
    HistoryIsMap "history-is-map" "messages of History is a map." ["CO-GH-2"];
    TimesAreNaive "times-are-naive" "Timestamps of History are no RFC 3339 times." ["CO-GH-2"];
    HistoryLacksAnswer "history-lacks-answer" "History lacks the newest answer." ["CO-GH-3"];
    TimeGoesBack "time-goes-back" "An entry of History is older than the one before it." ["CO-GH-4"];
    HistoryGreets "history-greets" "The History of a new session has an entry." ["CO-GH-5"];
    StatesTwice "states-twice" "GetState is answered twice." ["CO-GS-1"];
    NoAgents "no-agents" "State lists no agents." ["CO-GS-2"];
    PendingLacksParams "pending-lacks-params" "Entries of pending_approvals have no params." ["CO-GS-3"];
    PendingIsHidden "pending-is-hidden" "pending_approvals is always empty." ["CO-GS-4"];
    DecidedStaysPending "decided-stays-pending" "A decided call stays in pending_approvals." ["CO-GS-4"];
    NeverStreaming "never-streaming" "is_streaming is never true." ["CO-GS-5"];
    StaysStreaming "stays-streaming" "is_streaming stays true after the first turn." ["CO-GS-5"];
    OtherAgentIds "other-agent-ids" "State lists other agents than those that frames name." ["CO-GS-6", "CO-SM-6"];
    HistoryWaits "history-waits" "GetHistory is answered only after the turn." ["CO-GS-7"];
    NoPong "no-pong" "Ping is not answered." ["CO-PG-1"];
    PongHasExtra "pong-has-extra" "Pong has a field more." ["CO-PG-2"];
    PongsTwice "pongs-twice" "Ping is answered twice." ["CO-PG-3"];
    QueryStartsTurn "query-starts-turn" "GetHistory in a new session makes the agent speak." ["CO-PG-5"];
    ErrorLacksFatal "error-lacks-fatal" "Error has no fatal." ["CO-ER-1"];
    SilentOnRubbish "silent-on-rubbish" "What is no JSON is passed over." ["CO-ER-2"];
    SilentOnUnknownType "silent-on-unknown-type" "An unknown type is passed over." ["CO-ER-3"];
    SilentWithoutType "silent-without-type" "What has no type is passed over." ["CO-ER-4"];
    HangsUpOnRubbish "hangs-up-on-rubbish" "After a non-fatal Error about broken JSON the connection is closed." ["CO-ER-5"];
    FatalGoesOn "fatal-goes-on" "Text comes after a fatal Error." ["CO-ER-6"];
    FailsSilently "fails-silently" "A failure of the provider is not reported." ["CO-ER-7"];
    ServerTypesAct "server-types-act" "A client's Finished settles what is pending." ["CO-ER-9"];
    RubbishCancels "rubbish-cancels" "An invalid message cancels the turn." ["CO-ER-10"];
    ApprovalIsARule "approval-is-a-rule" "One approval allows all later calls of the tool." ["CO-CF-2"];
    DenyMissesParams "deny-misses-params" "A deny rule about params is not applied." ["CO-CF-3"];
}
