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
    BinaryFrames "binary-frames" "Events are sent as binary messages." ["MC-TRN-1"];
    AckInAnArray "ack-in-an-array" "accepted comes inside an array." ["MC-TRN-1"];
    AckIsLegacy "ack-is-legacy" "A legacy status frame is sent beside accepted." ["MC-ENV-1"];
    AckHasExtra "ack-has-extra" "accepted has an undeclared field." ["MC-ACK-7", "MC-ENV-13"];
    AckChangesVersion "ack-changes-version" "accepted bears another protocol version." ["MC-ENV-3"];
    AckWithoutReqId "ack-without-req-id" "accepted does not repeat the req_id." ["MC-ENV-9"];
    AckInventsReqId "ack-invents-req-id" "accepted has a req_id although the command had none." ["MC-ENV-12"];
    AckAfterEffects "ack-after-effects" "accepted comes after the run's first events." ["MC-ACK-2"];
    AcksToEveryone "acks-to-everyone" "accepted goes to every client of the session." ["MC-ACK-6", "MC-ENV-11"];
    AcksTwice "acks-twice" "Every command is acknowledged twice." ["MC-ENV-11"];
    NoAcknowledgement "no-acknowledgement" "Commands are carried out without accepted." ["MC-ACK-1", "MC-ACK-2", "MC-ACK-4", "MC-ACK-5"];
    WelcomeHasExtra "welcome-has-extra" "welcome has an undeclared field." ["MC-ENV-13"];
    WelcomeOfAnotherSession "welcome-of-another-session" "welcome names a session that the connection is not in." ["MC-HS-13"];
    WelcomesTwice "welcomes-twice" "A handshake is answered with two welcomes." ["MC-HS-3"];
    NoWelcome "no-welcome" "hello is answered without welcome." ["MC-HS-2"];
    NoOpeningSnapshot "no-opening-snapshot" "A fresh connection gets no snapshot." ["MC-HS-5"];
    SnapshotBeforeWelcome "snapshot-before-welcome" "The opening snapshot comes before welcome." ["MC-HS-2"];
    WrongVersion "wrong-version" "welcome announces version 1.0." ["MC-ENV-2", "MC-VER-1", "MC-VER-2"];
    EchoesVersion "echoes-version" "welcome announces whatever version the client asked for." ["MC-VER-6"];
    RunsBeforeHello "runs-before-hello" "A send before hello starts a run." ["MC-HS-9"];
    NoSessionVersion "no-session-version" "SessionState lacks version." ["MC-SES-2"];
    SessionStateHasExtra "session-state-has-extra" "SessionState has an undeclared field." ["MC-SES-11"];
    CapabilitiesAsText "capabilities-as-text" "SessionState.capabilities is a string." ["MC-SES-3"];
    ActiveRunStays "active-run-stays" "active_run_id still names a run that is over." ["MC-SES-8", "MC-SNP-5"];
    RunCounterStands "run-counter-stands" "run_counter does not count runs." ["MC-SES-10"];
    StaleCursor "stale-cursor" "SessionState.last_event_id lags one event behind." ["MC-SES-6"];
    RunStateHasExtra "run-state-has-extra" "RunState has an undeclared field." ["MC-RUN-9"];
    RunCursorAhead "run-cursor-ahead" "RunState.last_event_id is ahead of the event that bears it." ["MC-RUN-8"];
    RunIdsRepeat "run-ids-repeat" "The second run has the run_id of the first." ["MC-LIFE-1", "MC-RUN-10", "MC-RUN-4"];
    StartedAtMoves "started-at-moves" "started_at changes from status to status." ["MC-RUN-4"];
    StartedAtNaive "started-at-naive" "started_at has no offset." ["MC-RUN-3"];
    NoFinishedAt "no-finished-at" "finished_at is null when the run is over." ["MC-RUN-5"];
    UnknownStatus "unknown-status" "A running run has a status that is not in the list." ["MC-LIFE-1", "MC-RUN-2"];
    SkipsRunning "skips-running" "A run goes from starting to finished." ["MC-LIFE-1", "MC-LIFE-2"];
    StartsWithRunning "starts-with-running" "A run's first status is running." ["MC-SND-1"];
    FinishesTwice "finishes-twice" "finished is announced twice." ["MC-LIFE-3"];
    FailureIsFinished "failure-is-finished" "A run that failed ends with finished." ["MC-LIFE-5"];
    NoTurnDone "no-turn-done" "turn_done is never sent." ["MC-LIFE-8"];
    TurnDoneAfterTools "turn-done-after-tools" "turn_done is sent after runs with tool outputs, too." ["MC-LIFE-9"];
    TextBeforeStarting "text-before-starting" "user_text comes before the run's first status." ["MC-LIFE-13"];
    TextAfterFinish "text-after-finish" "Text comes after the run is over." ["MC-LIFE-4"];
    EventIdsRepeat "event-ids-repeat" "Two events have the same event_id." ["MC-FAN-3", "MC-ORD-1"];
    EventIdAsText "event-id-as-text" "event_id is a string." ["MC-ENV-7", "MC-LIFE-7", "MC-ORD-5"];
    ItemsWithoutEventId "items-without-event-id" "assistant_text has no event_id." ["MC-ENV-7", "MC-ORD-5", "MC-TI-7"];
    ForeignSessionId "foreign-session-id" "Events bear the id of another session." ["MC-ENV-4"];
    RunIdNoUuid "run-id-no-uuid" "run_id on events is no UUID." ["MC-ENV-5", "MC-ENV-6"];
    RunIdOfAnotherRun "run-id-of-another-run" "assistant_text bears the run_id of another run." ["MC-ENV-6"];
    TimeWithoutOffset "time-without-offset" "ts has no offset." ["MC-ENV-8"];
    TextUnderAnotherName "text-under-another-name" "assistant_text has content instead of text." ["MC-ENV-13", "MC-TI-2"];
    ReasoningAsText "reasoning-as-text" "Reasoning is sent as assistant_text." ["MC-SES-4"];
    NoUserText "no-user-text" "The user's text is not sent as an event." ["MC-TI-10"];
    AsciiOnly "ascii-only" "Characters beyond ASCII are lost." ["MC-TI-11"];
    CallIdsRepeat "call-ids-repeat" "All tool calls have the same call_id." ["MC-TI-9"];
    OutputBeforeCall "output-before-call" "A tool's output comes before its call." ["MC-APR-14", "MC-TI-12", "MC-TI-8"];
    ResultAsText "result-as-text" "A tool's result is a string." ["MC-TI-4"];
    ResultWithoutContent "result-without-content" "A tool's result has no content list." ["MC-TI-5"];
    OutputOfAnotherCall "output-of-another-call" "An output bears the call_id of no call." ["MC-TI-12", "MC-TI-8"];
    NeverAsks "never-asks" "Guarded tools run without approval." ["MC-APR-1", "MC-SES-4"];
    AnnouncesTwice "announces-twice" "A call is announced for approval twice." ["MC-APR-21"];
    ArgsJsonAsObject "args-json-as-object" "args_json is an object." ["MC-APR-2"];
    ArgsJsonOfAnotherCall "args-json-of-another-call" "args_json shows other arguments than the call's." ["MC-APR-15"];
    NoAwaitingStatus "no-awaiting-status" "The run does not say that it is awaiting approval." ["MC-APR-3"];
    StaysAwaiting "stays-awaiting" "After an approval the run does not say that it is running again." ["MC-APR-16"];
    ExecutesBeforeApproval "executes-before-approval" "A guarded tool runs before it is approved." ["MC-APR-4"];
    ExecutesDenied "executes-denied" "A denied tool runs all the same." ["MC-APR-8"];
    DenyHasNoKind "deny-has-no-kind" "A denial is announced as deny." ["MC-APR-7"];
    DecidesAgain "decides-again" "A decided call can be decided again." ["MC-APR-13"];
    DecidedStaysPending "decided-stays-pending" "A decided call stays in pending_approvals." ["MC-APR-16", "MC-RUN-7"];
    PendingStays "pending-stays" "Pending approvals outlive the run." ["MC-LIFE-14"];
    OneDecisionForAll "one-decision-for-all" "One decision decides every pending call." ["MC-APR-17"];
    AcceptsAnyCallId "accepts-any-call-id" "Decisions about unknown calls are accepted." ["MC-ABT-8", "MC-APR-10", "MC-APR-18"];
    IgnoresAbort "ignores-abort" "abort is accepted and ignored." ["MC-ABT-1", "MC-ABT-10", "MC-ABT-11", "MC-ABT-3", "MC-ABT-4", "MC-ABT-8"];
    NoAbortingStatus "no-aborting-status" "abort ends the run without the status aborting." ["MC-ABT-2"];
    TextAfterAbort "text-after-abort" "Text comes after an aborted run has ended." ["MC-LIFE-4"];
    AbortsStaleRun "aborts-stale-run" "abort with another run's id ends the active run." ["MC-ABT-5"];
    AbortsNothing "aborts-nothing" "abort without an active run is accepted." ["MC-ABT-6"];
    SnapshotWithoutVersion "snapshot-without-version" "snapshot lacks v." ["MC-ENV-2"];
    SnapshotCursorAsText "snapshot-cursor-as-text" "snapshot.event_id is a string." ["MC-SNP-3"];
    SnapshotHasExtra "snapshot-has-extra" "snapshot has an undeclared field." ["MC-ENV-13", "MC-SNP-11"];
    SnapshotHidesRun "snapshot-hides-run" "snapshot never shows a run." ["MC-RUN-7", "MC-SNP-5"];
    SnapshotMissesLastItem "snapshot-misses-last-item" "snapshot lacks the newest transcript item." ["MC-SNP-4"];
    SnapshotsToEveryone "snapshots-to-everyone" "A snapshot goes to every client of the session." ["MC-SNP-12"];
    NoReplay "no-replay" "resume replays nothing." ["MC-HS-6", "MC-RES-1", "MC-RES-4", "MC-SES-4"];
    ReplaysLastSeen "replays-last-seen" "resume replays the last event seen, too." ["MC-RES-3", "MC-RES-5"];
    ReplaySkipsOne "replay-skips-one" "resume leaves out the first missed event." ["MC-RES-1", "MC-RES-4"];
    ReplayChangesText "replay-changes-text" "A replayed text differs from the original." ["MC-ORD-4", "MC-RES-2"];
    PartialReplay "partial-replay" "Past the replay window the rest is replayed." ["MC-RES-7"];
    FutureIsFine "future-is-fine" "A last_seen_event_id beyond the log is taken as it is." ["MC-RES-11", "MC-RES-3"];
    OthersMissUserText "others-miss-user-text" "user_text goes to one client only." ["MC-FAN-1", "MC-SNP-4", "MC-TI-10"];
    OthersSeeOtherText "others-see-other-text" "The clients of a session see different texts." ["MC-ORD-4"];
    NoDedupe "no-dedupe" "A repeated client_msg_id adds its text once more." ["MC-IDM-1", "MC-IDM-3", "MC-IDM-4"];
    DedupesByText "dedupes-by-text" "Messages with the same text are taken for repeats." ["MC-IDM-5", "MC-IDM-6"];
    DuplicateIsError "duplicate-is-error" "A repeated client_msg_id is answered with an error." ["MC-IDM-2"];
    RunsOverlap "runs-overlap" "A second send starts a second run at the same time." ["MC-LIFE-6"];
    ErrorWithoutReqId "error-without-req-id" "error does not repeat the req_id." ["MC-ENV-10"];
    ErrorWithoutMessage "error-without-message" "error has no message." ["MC-ERR-1"];
    ErrorDetailsIsText "error-details-is-text" "error.details is a string." ["MC-ERR-2"];
    UnlistedErrorCode "unlisted-error-code" "error has a code that is not in the list." ["MC-ABT-5", "MC-ABT-6", "MC-APR-10", "MC-APR-12", "MC-ERR-10", "MC-ERR-8", "MC-ERR-9", "MC-SND-4"];
    WrongCodeForMissingField "wrong-code-for-missing-field" "A missing field is called INVALID_COMMAND." ["MC-ERR-9"];
    ErrorsToEveryone "errors-to-everyone" "Errors go to every client of the session." ["MC-ENV-11", "MC-FAN-7"];
    ErrorStartsRun "error-starts-run" "A refused command starts a run." ["MC-ERR-6"];
    ErrorCountsAsRun "error-counts-as-run" "A refused command counts as a run." ["MC-ERR-6", "MC-SES-10"];
    SilentOnUnknownType "silent-on-unknown-type" "An unknown type is ignored." ["MC-ERR-11", "MC-ERR-3"];
    IgnoresBrokenJson "ignores-broken-json" "What is no JSON is ignored." ["MC-ERR-5"];
    MissingFieldIsTaken "missing-field-is-taken" "send without text is accepted." ["MC-SND-2"];
    WrongTypesAreTaken "wrong-types-are-taken" "Fields of a wrong type are accepted." ["MC-HS-12", "MC-PNG-2", "MC-RES-10", "MC-SND-3", "MC-SND-6", "MC-SNP-8", "MC-VER-7"];
    UndeclaredFieldsAreTaken "undeclared-fields-are-taken" "Undeclared fields are accepted." ["MC-ENV-14"];
    AnswersPong "answers-pong" "ping is answered with pong." ["MC-ENV-1"];
    RefusesPing "refuses-ping" "ping is refused." ["MC-PNG-1"];
    HeartbeatZero "heartbeat-zero" "heartbeat announces an interval of zero." ["MC-HB-1"];
    HeartbeatTakesEventId "heartbeat-takes-event-id" "heartbeat bears an event_id." ["MC-HB-3"];
    BackpressureMisspelt "backpressure-misspelt" "backpressure has an unlisted state." ["MC-BP-1"];
}
