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
    LoadingInAnArray "loading-in-an-array" "loading_state comes inside an array." ["AL-BASE-1"];
    BinaryFinish "binary-finish" "agent_finished is sent as a binary message." ["AL-BASE-1"];
    ErrorWithoutId "error-without-id" "error has no id." ["AL-BASE-2"];
    IdsRepeat "ids-repeat" "All items of a turn have the same message id." ["AL-BASE-3"];
    IdsAreNumbers "ids-are-numbers" "Message ids are running numbers." ["AL-BASE-4"];
    UnlistedType "unlisted-type" "A turn is announced by turn_started." ["AL-BASE-5"];
    LoadingBesidePayload "loading-beside-payload" "loading stands beside the payload, not in it." ["AL-BASE-6"];
    NeedsPayload "needs-payload" "Queries without payload are refused." ["AL-BASE-9"];
    NeedsUuid "needs-uuid" "Messages whose id is no UUID are refused." ["AL-BASE-10"];
    IgnoresInput "ignores-input" "user_input is ignored." ["AL-UI-1"];
    InputIsOptional "input-is-optional" "user_input without input starts a turn." ["AL-UI-2"];
    InputMayBeText "input-may-be-text" "user_input whose input is a string starts a turn." ["AL-UI-3"];
    KnowsResponseIds "knows-response-ids" "An unknown previousResponseId is refused." ["AL-UI-4"];
    OneItemOnly "one-item-only" "Of several items in user_input the first is read." ["AL-UI-6"];
    OneTurnOnly "one-turn-only" "A connection has one turn." ["AL-UI-9"];
    InputReplacesTurn "input-replaces-turn" "user_input during a turn ends that turn." ["AL-UI-10"];
    NoLoading "no-loading" "A turn begins without loading_state true." ["AL-SEQ-1"];
    LateLoading "late-loading" "loading_state true comes after the first item." ["AL-SEQ-1"];
    LoadingStays "loading-stays" "loading_state false is left out when a turn succeeds." ["AL-SEQ-2", "AL-SEQ-3", "AL-SEQ-4"];
    FinishBeforeLoading "finish-before-loading" "agent_finished comes before loading_state false." ["AL-SEQ-3"];
    LoadingTwice "loading-twice" "loading_state true is sent twice." ["AL-SEQ-4"];
    IdleTwice "idle-twice" "loading_state false is sent twice." ["AL-SEQ-4"];
    ItemAfterEnd "item-after-end" "The last item comes after loading_state false." ["AL-SEQ-5"];
    FinishesTwice "finishes-twice" "agent_finished is sent twice." ["AL-SEQ-6"];
    NeverFinishes "never-finishes" "agent_finished is never sent." ["AL-SEQ-6"];
    SwallowsShortAnswers "swallows-short-answers" "An answer in one piece is lost." ["AL-SEQ-7"];
    OutputBeforeCall "output-before-call" "A tool's output comes before its call." ["AL-RI-9", "AL-SEQ-8"];
    StopsAfterTools "stops-after-tools" "The turn ends when the tools are done." ["AL-SEQ-8"];
    ErrorAfterLoading "error-after-loading" "The error of a failed turn comes after loading_state false." ["AL-SEQ-9"];
    FailureFinishes "failure-finishes" "A failed turn ends with agent_finished." ["AL-SEQ-9"];
    StuckAfterError "stuck-after-error" "After a failed turn no other one starts." ["AL-SEQ-10"];
    LoadingAsText "loading-as-text" "loading is a string." ["AL-LS-1"];
    CommandAsText "command-as-text" "approval_request shows the command as one string." ["AL-AP-1"];
    NeverAsks "never-asks" "Dangerous commands run without approval." ["AL-AP-2"];
    AsksOnceForAll "asks-once-for-all" "A command approved on one connection is not asked for on another." ["AL-AP-3"];
    RunsBeforeAnswer "runs-before-answer" "A command runs before it is approved." ["AL-AP-4"];
    YesIsNo "yes-is-no" "An approved command does not run." ["AL-AP-5"];
    YesIsAlways "yes-is-always" "yes approves the same command for good." ["AL-AP-6"];
    NoExitRuns "no-exit-runs" "no-exit stops the turn, but the command runs." ["AL-AP-7"];
    NoExitGoesOn "no-exit-goes-on" "After no-exit the agent goes on." ["AL-AP-7"];
    NoContinueRuns "no-continue-runs" "no-continue runs the command and says that it did not." ["AL-AP-8"];
    NoContinueStops "no-continue-stops" "no-continue without a reason ends the turn." ["AL-AP-8"];
    AlwaysIsOnce "always-is-once" "always approves one command only." ["AL-AP-9"];
    ExplainRuns "explain-runs" "explain runs the command." ["AL-AP-10"];
    ExplainSaysNothing "explain-says-nothing" "explain yields no explanation." ["AL-AP-10"];
    AnyReviewApproves "any-review-approves" "A review that is not in the list approves." ["AL-AP-11"];
    NoReviewApproves "no-review-approves" "An approval_response without review approves." ["AL-AP-12"];
    KeepsStrayApproval "keeps-stray-approval" "An approval of nothing approves the next command." ["AL-AP-13"];
    RefusesNull "refuses-null" "An approval_response with null fields is refused." ["AL-AP-14"];
    LosesDenyMessage "loses-deny-message" "customDenyMessage does not reach the agent." ["AL-AP-15"];
    NoPatch "no-patch" "The request for a patch has no applyPatch." ["AL-AP-16"];
    PatchHasNoText "patch-has-no-text" "applyPatch has no patch." ["AL-AP-16"];
    PatchEverywhere "patch-everywhere" "Every request has an applyPatch, be it empty." ["AL-AP-17"];
    AsksAllAtOnce "asks-all-at-once" "Two commands are asked for at the same time." ["AL-AP-18"];
    RunsWhenGone "runs-when-gone" "A waiting command runs when its client goes away." ["AL-AP-19"];
    RefusesExplanation "refuses-explanation" "An approval_response with applyPatch and explanation is refused." ["AL-AP-22"];
    ItemWithoutType "item-without-type" "A call item has no type." ["AL-RI-1"];
    MessageWithoutRole "message-without-role" "Assistant messages have no role." ["AL-RI-2"];
    OutputText "output-text" "The parts of assistant messages are of type output_text." ["AL-RI-2"];
    ItemWithoutId "item-without-id" "Outputs have no payload.id." ["AL-RI-3"];
    IdPerChunk "id-per-chunk" "Every chunk has a payload.id of its own." ["AL-RI-4"];
    Cumulative "cumulative" "Every chunk has the whole text so far." ["AL-RI-5"];
    MergesMessages "merges-messages" "All messages of a turn have the same payload.id." ["AL-RI-6"];
    ArgumentsAsObject "arguments-as-object" "The arguments of a call are an object." ["AL-RI-7"];
    ArgumentsAreNoJson "arguments-are-no-json" "The arguments of a call are written as key=value." ["AL-RI-8"];
    OutputOfAnotherCall "output-of-another-call" "An output names a call that was not made." ["AL-RI-9"];
    OutputTwice "output-twice" "Every output is sent twice." ["AL-RI-9"];
    OutputAsObject "output-as-object" "The output of a call is an object." ["AL-RI-10"];
    NoDuration "no-duration" "The output's metadata lacks duration_seconds." ["AL-RI-11"];
    ShellCommandAsText "shell-command-as-text" "The command of a local_shell_call is one string." ["AL-RI-12"];
    ShellOutputAsObject "shell-output-as-object" "The output of a local shell command is an object." ["AL-RI-13"];
    ReasoningWithoutDuration "reasoning-without-duration" "Reasoning has no duration_ms." ["AL-RI-14"];
    SwallowsFailures "swallows-failures" "A failure of the provider is not told." ["AL-ERR-6", "AL-RI-15"];
    HoldsItemsBack "holds-items-back" "The items of a turn are sent together at its end." ["AL-RI-16"];
    ChunksOutOfOrder "chunks-out-of-order" "The first chunk of a message comes last." ["AL-RI-17"];
    UnlistedKind "unlisted-kind" "A turn begins with an item of the kind web_search_call." ["AL-RI-22"];
    NoResponseId "no-response-id" "agent_finished has no responseId." ["AL-FIN-1"];
    ResponseIdRepeats "response-id-repeats" "Every turn has the same responseId." ["AL-FIN-2"];
    SilentOnContext "silent-on-context" "get_context_info is not answered." ["AL-BASE-9", "AL-CON-10", "AL-CTX-1", "AL-CTX-11"];
    UsageAsText "usage-as-text" "usagePercent is a string." ["AL-CTX-2"];
    UsageAsFraction "usage-as-fraction" "usagePercent is a fraction of one." ["AL-CTX-3"];
    FractionalLength "fractional-length" "transcriptLength is no integer." ["AL-CTX-4"];
    OverTheLimit "over-the-limit" "tokenCount exceeds maxTokens." ["AL-CTX-4"];
    StaleCounts "stale-counts" "context_info shows the counts of the beginning." ["AL-CTX-5"];
    IgnoresCompact "ignores-compact" "manual_compact is not answered." ["AL-BASE-9", "AL-CTX-6"];
    NoReduction "no-reduction" "context_compacted lacks reductionPercent." ["AL-CTX-7"];
    ReductionOfTheRest "reduction-of-the-rest" "reductionPercent says what is left." ["AL-CTX-8"];
    CompactionGrows "compaction-grows" "newTokenCount is above oldTokenCount." ["AL-CTX-8"];
    CompactionHasNoEffect "compaction-has-no-effect" "After a compaction the count is as before." ["AL-CTX-9"];
    SilentCompaction "silent-compaction" "The server compacts by itself and does not say so." ["AL-CTX-10"];
    ContextWaits "context-waits" "get_context_info is not answered during a turn." ["AL-CTX-11"];
    ContextStartsTurn "context-starts-turn" "get_context_info without payload starts a turn." ["AL-CTX-12"];
    OtherStrategy "other-strategy" "context_compacted names another strategy than context_info." ["AL-CTX-13"];
    ErrorWithoutMessage "error-without-message" "error has a code and no message." ["AL-ERR-1"];
    TakesAnyId "takes-any-id" "user_input with a number as id starts a turn." ["AL-ERR-2"];
    SilentOnBadJson "silent-on-bad-json" "Text that is no JSON is ignored." ["AL-ERR-3"];
    ClosesOnBadJson "closes-on-bad-json" "Text that is no JSON ends the connection." ["AL-ERR-3"];
    SilentOnUnknownType "silent-on-unknown-type" "A message of an unknown type is ignored." ["AL-ERR-4"];
    SilentUninitialised "silent-uninitialised" "A server whose agent is not initialised does not answer." ["AL-ERR-5"];
    ObeysServerTypes "obeys-server-types" "A response_item of the client's is refused, and counts in the transcript all the same." ["AL-ERR-7"];
    RoutesByClientId "routes-by-client-id" "Items and errors go to the connection that first used the message's id." ["AL-CON-4", "AL-ERR-8"];
    TurnsOutliveConnections "turns-outlive-connections" "A turn goes on when its connection is gone, and reaches the next one with the same id." ["AL-CON-3"];
    LosesBursts "loses-bursts" "Of many queries in a row only the first fifty are answered." ["AL-CON-10"];
    DropsLargeInput "drops-large-input" "A very large input cuts the connection." ["AL-CON-12"];
}
