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
    BinaryFrames "binary-frames" "Events are sent as binary messages." [];
    AckInAnArray "ack-in-an-array" "accepted comes inside an array." [];
    AckIsLegacy "ack-is-legacy" "A legacy status frame is sent beside accepted." [];
    AckHasExtra "ack-has-extra" "accepted has an undeclared field." [];
    AckChangesVersion "ack-changes-version" "accepted bears another protocol version." [];
    AckWithoutReqId "ack-without-req-id" "accepted does not repeat the req_id." [];
    AckInventsReqId "ack-invents-req-id" "accepted has a req_id although the command had none." [];
    AckAfterEffects "ack-after-effects" "accepted comes after the run's first events." [];
    AcksToEveryone "acks-to-everyone" "accepted goes to every client of the session." [];
    AcksTwice "acks-twice" "Every command is acknowledged twice." [];
    NoAcknowledgement "no-acknowledgement" "Commands are carried out without accepted." [];
    WelcomeHasExtra "welcome-has-extra" "welcome has an undeclared field." [];
    WelcomeOfAnotherSession "welcome-of-another-session" "welcome names a session that the connection is not in." [];
    WelcomesTwice "welcomes-twice" "A handshake is answered with two welcomes." [];
    NoWelcome "no-welcome" "hello is answered without welcome." [];
    NoOpeningSnapshot "no-opening-snapshot" "A fresh connection gets no snapshot." [];
    SnapshotBeforeWelcome "snapshot-before-welcome" "The opening snapshot comes before welcome." [];
    WrongVersion "wrong-version" "welcome announces version 1.0." [];
    EchoesVersion "echoes-version" "welcome announces whatever version the client asked for." [];
    RunsBeforeHello "runs-before-hello" "A send before hello starts a run." [];
    NoSessionVersion "no-session-version" "SessionState lacks version." [];
    SessionStateHasExtra "session-state-has-extra" "SessionState has an undeclared field." [];
    CapabilitiesAsText "capabilities-as-text" "SessionState.capabilities is a string." [];
    ActiveRunStays "active-run-stays" "active_run_id still names a run that is over." [];
    RunCounterStands "run-counter-stands" "run_counter does not count runs." [];
    StaleCursor "stale-cursor" "SessionState.last_event_id lags one event behind." [];
    RunStateHasExtra "run-state-has-extra" "RunState has an undeclared field." [];
    RunCursorAhead "run-cursor-ahead" "RunState.last_event_id is ahead of the event that bears it." [];
    RunIdsRepeat "run-ids-repeat" "The second run has the run_id of the first." [];
    StartedAtMoves "started-at-moves" "started_at changes from status to status." [];
    StartedAtNaive "started-at-naive" "started_at has no offset." [];
    NoFinishedAt "no-finished-at" "finished_at is null when the run is over." [];
    UnknownStatus "unknown-status" "A running run has a status that is not in the list." [];
    SkipsRunning "skips-running" "A run goes from starting to finished." [];
    StartsWithRunning "starts-with-running" "A run's first status is running." [];
    FinishesTwice "finishes-twice" "finished is announced twice." [];
    NeverFinishes "never-finishes" "A run never ends." [];
    FailureIsFinished "failure-is-finished" "A run that failed ends with finished." [];
    NoTurnDone "no-turn-done" "turn_done is never sent." [];
    TurnDoneAfterTools "turn-done-after-tools" "turn_done is sent after runs with tool outputs, too." [];
    TextBeforeStarting "text-before-starting" "user_text comes before the run's first status." [];
    TextAfterFinish "text-after-finish" "Text comes after the run is over." [];
    EventIdsRepeat "event-ids-repeat" "Two events have the same event_id." [];
    EventIdsGoBack "event-ids-go-back" "event_id falls back within a session." [];
    EventIdAsText "event-id-as-text" "event_id is a string." [];
    ItemsWithoutEventId "items-without-event-id" "assistant_text has no event_id." [];
    ForeignSessionId "foreign-session-id" "Events bear the id of another session." [];
    RunIdNoUuid "run-id-no-uuid" "run_id on events is no UUID." [];
    RunIdOfAnotherRun "run-id-of-another-run" "assistant_text bears the run_id of another run." [];
    TimeWithoutOffset "time-without-offset" "ts has no offset." [];
    TextUnderAnotherName "text-under-another-name" "assistant_text has content instead of text." [];
    ReasoningAsText "reasoning-as-text" "Reasoning is sent as assistant_text." [];
    NoUserText "no-user-text" "The user's text is not sent as an event." [];
    NoAssistantText "no-assistant-text" "The model's text is swallowed." [];
    AsciiOnly "ascii-only" "Characters beyond ASCII are lost." [];
    CallIdsRepeat "call-ids-repeat" "All tool calls have the same call_id." [];
    OutputBeforeCall "output-before-call" "A tool's output comes before its call." [];
    NoOutputs "no-outputs" "Tool outputs are not sent." [];
    ResultAsText "result-as-text" "A tool's result is a string." [];
    ResultWithoutContent "result-without-content" "A tool's result has no content list." [];
    OutputOfAnotherCall "output-of-another-call" "An output bears the call_id of no call." [];
    NeverAsks "never-asks" "Guarded tools run without approval." [];
    AsksForOpenTools "asks-for-open-tools" "Open tools are announced for approval." [];
    AnnouncesTwice "announces-twice" "A call is announced for approval twice." [];
    ArgsJsonAsObject "args-json-as-object" "args_json is an object." [];
    ArgsJsonOfAnotherCall "args-json-of-another-call" "args_json shows other arguments than the call's." [];
    NoAwaitingStatus "no-awaiting-status" "The run does not say that it is awaiting approval." [];
    StaysAwaiting "stays-awaiting" "After an approval the run does not say that it is running again." [];
    ExecutesBeforeApproval "executes-before-approval" "A guarded tool runs before it is approved." [];
    ExecutesDenied "executes-denied" "A denied tool runs all the same." [];
    DenyHasNoKind "deny-has-no-kind" "A denial is announced as deny." [];
    NoDecisionEvent "no-decision-event" "Decisions are not announced." [];
    DecidesAgain "decides-again" "A decided call can be decided again." [];
    DecidedStaysPending "decided-stays-pending" "A decided call stays in pending_approvals." [];
    PendingStays "pending-stays" "Pending approvals outlive the run." [];
    OneDecisionForAll "one-decision-for-all" "One decision decides every pending call." [];
    AcceptsAnyCallId "accepts-any-call-id" "Decisions about unknown calls are accepted." [];
    IgnoresAbort "ignores-abort" "abort is accepted and ignored." [];
    NoAbortingStatus "no-aborting-status" "abort ends the run without the status aborting." [];
    TextAfterAbort "text-after-abort" "Text comes after an aborted run has ended." [];
    AbortsStaleRun "aborts-stale-run" "abort with another run's id ends the active run." [];
    AbortsNothing "aborts-nothing" "abort without an active run is accepted." [];
    SnapshotWithoutVersion "snapshot-without-version" "snapshot lacks v." [];
    SnapshotCursorAsText "snapshot-cursor-as-text" "snapshot.event_id is a string." [];
    SnapshotHasExtra "snapshot-has-extra" "snapshot has an undeclared field." [];
    SnapshotHidesRun "snapshot-hides-run" "snapshot never shows a run." [];
    SnapshotMissesLastItem "snapshot-misses-last-item" "snapshot lacks the newest transcript item." [];
    SnapshotIsAnEvent "snapshot-is-an-event" "Asking for a snapshot emits an event." [];
    SnapshotsToEveryone "snapshots-to-everyone" "A snapshot goes to every client of the session." [];
    NoResume "no-resume" "resume is refused as a first frame." [];
    NoReplay "no-replay" "resume replays nothing." [];
    ReplaysLastSeen "replays-last-seen" "resume replays the last event seen, too." [];
    ReplaySkipsOne "replay-skips-one" "resume leaves out the first missed event." [];
    ReplayChangesText "replay-changes-text" "A replayed text differs from the original." [];
    ReplayBackwards "replay-backwards" "The replay begins with the newest event." [];
    PartialReplay "partial-replay" "Past the replay window the rest is replayed." [];
    FutureIsFine "future-is-fine" "A last_seen_event_id beyond the log is taken as it is." [];
    RunDiesWithClient "run-dies-with-client" "A run is aborted when a client leaves." [];
    OthersMissUserText "others-miss-user-text" "user_text goes to one client only." [];
    OthersMissDecisions "others-miss-decisions" "approval_decision goes to one client only." [];
    OthersSeeOtherText "others-see-other-text" "The clients of a session see different texts." [];
    LeaksToOtherSessions "leaks-to-other-sessions" "The user's text goes to clients of other sessions." [];
    NoDedupe "no-dedupe" "A repeated client_msg_id starts another run." [];
    DedupesByText "dedupes-by-text" "Messages with the same text are taken for repeats." [];
    DuplicateIsError "duplicate-is-error" "A repeated client_msg_id is answered with an error." [];
    RunsOverlap "runs-overlap" "A second send starts a second run at the same time." [];
    ErrorWithoutReqId "error-without-req-id" "error does not repeat the req_id." [];
    ErrorWithoutMessage "error-without-message" "error has no message." [];
    ErrorDetailsIsText "error-details-is-text" "error.details is a string." [];
    UnlistedErrorCode "unlisted-error-code" "error has a code that is not in the list." [];
    WrongCodeForMissingField "wrong-code-for-missing-field" "A missing field is called INVALID_COMMAND." [];
    ErrorsToEveryone "errors-to-everyone" "Errors go to every client of the session." [];
    ErrorStartsRun "error-starts-run" "A refused command starts a run." [];
    ErrorCountsAsRun "error-counts-as-run" "A refused command counts as a run." [];
    ClosesOnError "closes-on-error" "The connection is closed after an error." [];
    SilentOnUnknownType "silent-on-unknown-type" "An unknown type is ignored." [];
    IgnoresBrokenJson "ignores-broken-json" "What is no JSON is ignored." [];
    MissingFieldIsTaken "missing-field-is-taken" "send without text is accepted." [];
    WrongTypesAreTaken "wrong-types-are-taken" "Fields of a wrong type are accepted." [];
    UndeclaredFieldsAreTaken "undeclared-fields-are-taken" "Undeclared fields are accepted." [];
    AnswersPong "answers-pong" "ping is answered with pong." [];
    RefusesPing "refuses-ping" "ping is refused." [];
    HeartbeatZero "heartbeat-zero" "heartbeat announces an interval of zero." [];
    HeartbeatTakesEventId "heartbeat-takes-event-id" "heartbeat bears an event_id." [];
    BackpressureMisspelt "backpressure-misspelt" "backpressure has an unlisted state." [];
}
