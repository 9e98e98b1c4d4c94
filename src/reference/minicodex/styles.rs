//! The legal behaviours. How to add one: see the macro.

use crate::reference::styles::styles;

styles! {
    NullsAreLeftOut "nulls-left-out" "Fields of session_state and run_state that are null are omitted." ["MC-AMB-22"];
    AwaitsFirst "awaits-first" "run_status awaiting_approval comes before approval_pending." ["MC-AMB-30"];
    AckAfterEffects "decisions-acknowledged-last" "accepted of approve, deny and abort comes after their effects." ["MC-AMB-21"];
    SnapshotWithoutReqId "snapshot-without-req-id" "A snapshot does not repeat the req_id of its query." ["MC-ENV-9"];
    SuccessUnmarked "success-unmarked" "A result that is not an error has no isError." ["MC-TI-5"];
    NullStructured "structured-content-null" "structuredContent of a result is null." ["MC-AMB-22", "MC-TI-5"];
    IndentedArgs "args-json-indented" "args_json is indented." ["MC-AMB-34"] excludes ["args-json-null", "no-args-json"];
    ReorderedArgs "args-json-reordered" "The keys of args_json come in another order." ["MC-AMB-34"] excludes ["args-json-null", "no-args-json", "args-json-indented"];
    NullArgs "args-json-null" "args_json is null." ["MC-AMB-34"] excludes ["no-args-json"];
    NoArgs "no-args-json" "args_json is missing." ["MC-AMB-34"];
    BriefHasMore "brief-has-more" "An entry of pending_approvals has a further field." ["MC-APB-1"];
    ItemsHaveMore "items-have-more" "Transcript items have a further field." ["MC-ENV-13"];
    StartsTwice "starting-repeated" "The status starting is announced twice." ["MC-LIFE-1"];
    RunsTwice "running-repeated" "The status running is announced twice." ["MC-LIFE-1"] excludes ["running-with-the-output"];
    RunsWithOutput "running-with-the-output" "A run is announced as running with its first output, and not before." ["MC-LIFE-2"];
    CallAfterPending "call-after-announcement" "tool_call comes after approval_pending." ["MC-AMB-30"] excludes ["call-when-decided"];
    CallWhenDecided "call-when-decided" "tool_call of a call that needs approval comes when the call is decided." ["MC-AMB-30", "MC-TI-8"];
    CallsTogether "calls-together" "The calls of a response are announced before the first has run, and run in reverse order." ["MC-TI-8"];
    AsksOneByOne "asks-one-by-one" "The second of two calls that need approval is announced when the first is decided." ["MC-APR-17"];
    RefusesBeyond "refuses-beyond-the-log" "A resume beyond the log is refused without a welcome." ["MC-RES-11", "MC-AMB-18"];
    SmallPieces "small-pieces" "Text comes in small pieces, short texts in pieces of one to three characters." ["MC-TI-11"] excludes ["one-piece"];
    OnePiece "one-piece" "The model's chunks come in one piece." ["MC-TI-11"];
    SilentRule "rule-denies-in-silence" "A call that a rule denies gives no output." ["MC-TI-13"];
    SilentDenial "denied-in-silence" "A call that the user denies gives no output." ["MC-AMB-31"];
    OwnReasoning "own-reasoning" "Each run has an additional reasoning item of the server." ["MC-TI-6"];
    IdsFromZero "ids-from-zero" "The first event_id is 0." ["MC-AMB-23", "MC-ENV-7"];
    IdsWithGaps "ids-with-gaps" "event_id grows by more than one." ["MC-AMB-23"];
    PingAccepted "ping-accepted" "A ping is answered by accepted." ["MC-AMB-17"];
    PingBeats "ping-heartbeat" "A ping is answered by a heartbeat." ["MC-AMB-17"];
    SnapshotAccepted "get-snapshot-accepted" "get_snapshot is answered by accepted, too." ["MC-AMB-20"] excludes ["accepted-behind-the-reply"];
    AcceptedBehind "accepted-behind-the-reply" "hello and get_snapshot are answered by accepted, too, behind their own reply." ["MC-AMB-20"] excludes ["snapshots-late"];
    NoHeartbeat "no-heartbeat" "There are no heartbeats." ["MC-HB-1"];
    BareEvents "bare-events" "Events have neither run_id nor ts." ["MC-AMB-35"] excludes ["full-envelopes"];
    FullEnvelopes "full-envelopes" "Every event has v and session_id." ["MC-ENV-3", "MC-ENV-4"];
    TurnDoneFirst "turn-done-first" "turn_done comes before the status finished." ["MC-AMB-08"];
    ConflictUnknown "second-decision-unknown" "A second decision is refused with UNKNOWN_CALL_ID." ["MC-AMB-15"];
    DuplicateSilent "duplicate-in-silence" "A repeated client_msg_id is not answered." ["MC-AMB-12"];
    IdleRunHidden "no-run-when-idle" "run_state of a snapshot is null when no run is active." ["MC-AMB-28"];
    AbortsInError "abort-ends-in-error" "An aborted run ends with the status error." ["MC-AMB-03"];
    CallIdsAreUuids "call-ids-are-uuids" "call_id is a UUID." ["MC-TI-9"];
    DenyAborts "deny-aborts" "A denial is announced as deny_abort and ends the run." ["MC-AMB-16", "MC-APR-9"];
    ResumeBehindHello "resume-behind-hello" "A resume is accepted only after hello, and gets no second welcome." ["MC-AMB-10"];
    DrainsOnSnapshot "drain-before-hang-up" "A snapshot is followed by drain, and by ok only 100 ms later: many clients have disconnected by then." ["MC-BP-2"];
    SnapshotsLate "snapshots-late" "A snapshot shows the state of when it was asked for, and is sent 3 ms later, behind what has happened meanwhile." ["MC-SNP-4"];
    TextsAreJoined "texts-are-joined" "Neighbouring assistant_text items are one in the transcript of a snapshot." ["MC-SNP-4", "MC-TI-11"];
    NoOpeningSnapshot "no-opening-snapshot" "hello is answered only by welcome." ["MC-AMB-09"] warns ["MC-HS-5"];
}
