//! The legal behaviours. How to add one: see the macro.

use crate::reference::styles::styles;

styles! {
    // ---- the envelope
    PlainIds "plain-ids" "Message ids are not UUIDs." ["AL-AMB-03"] warns ["AL-BASE-4"];
    EchoesIds "echoes-ids" "context_info and error have the id of the message that they answer." ["AL-AMB-02"] warns ["AL-BASE-4"];
    MoreFields "more-fields" "Messages and their payloads have further fields." ["AL-BASE-6"];
    NoDetails "no-details" "An error has no details." ["AL-ERR-1"] excludes ["details-are-text"];
    DetailsAreText "details-are-text" "The details of an error are a string." ["AL-ERR-1"];
    LongResponseIds "response-ids-are-uuids" "responseId is a UUID." ["AL-FIN-1"];

    // ---- the frame of a turn
    LateFinish "late-finish" "agent_finished comes 30 ms after loading_state false." ["AL-SEQ-3"];
    FinishesFirst "finishes-first" "agent_finished comes before loading_state false." ["AL-AMB-07"] warns ["AL-SEQ-3"] excludes ["late-finish"];
    IdleWhileAsking "idle-while-asking" "loading is false while an approval is pending." ["AL-AMB-08"] excludes ["idle-before-asking"];
    IdleBeforeAsking "idle-before-asking" "loading becomes false before an approval is requested." ["AL-AMB-08"];
    QueuesInput "queues-input" "user_input during a turn starts a turn of its own after the current one." ["AL-AMB-14"] excludes ["drops-input", "joins-input"];
    DropsInput "drops-input" "user_input during a turn is ignored." ["AL-AMB-14"] excludes ["joins-input"];
    JoinsInput "joins-input" "The agent answers a user_input during a turn in the same turn, behind its other responses." ["AL-AMB-14"];
    FailureFinishes "failures-finish" "A failed turn ends with agent_finished." ["AL-AMB-06"] warns ["AL-SEQ-9"];
    FailsByMessage "failures-are-messages" "Every failure of the provider is reported by a system message." ["AL-ERR-6", "AL-RI-15"] excludes ["network-errors-are-errors"];
    FailsByError "network-errors-are-errors" "A network error is reported by an error." ["AL-ERR-6", "AL-RI-15"];

    // ---- messages and other items
    TwoTextParts "two-text-parts" "A message's text comes in two parts of its content." ["AL-RI-5"] excludes ["content-is-text"];
    ContentIsText "content-is-text" "The content of a message is a plain text." ["AL-AMB-05"] warns ["AL-RI-2"];
    OnePiece "one-piece" "A message comes in one piece." ["AL-AMB-04"] excludes ["small-pieces"];
    SmallPieces "small-pieces" "A message comes in chunks of one to three characters." ["AL-RI-5"];
    EmptyFirstChunk "empty-first-chunk" "The first chunk of a message is empty." ["AL-RI-19"];
    ItemsHaveStatus "items-have-status" "Every item has a status." ["AL-AMB-24"];
    OwnReasoning "own-reasoning" "Every turn has an additional reasoning item of the server." ["AL-RI-14"];
    NoReasoning "no-reasoning" "Reasoning is not passed on." ["AL-RI-14"];
    CallIdsApart "call-ids-apart" "The id of a call's item differs from its call_id." ["AL-RI-3", "AL-RI-7"];
    IndentedArguments "indented-arguments" "The arguments of a call are indented." ["AL-RI-8"];
    IndentedOutputs "indented-outputs" "The output of a call is indented JSON." ["AL-RI-11"] excludes ["plain-outputs"];
    PlainOutputs "plain-outputs" "The output of a call is the plain text." ["AL-RI-10"] warns ["AL-RI-11"];
    OddExitCodes "odd-exit-codes" "A tool that fails has a negative exit code." ["AL-RI-11"];
    CallsTogether "calls-together" "The calls of a response that need no approval are announced before the first has run." ["AL-SEQ-8"];
    OutputsReversed "outputs-reversed" "The outputs of calls that are announced together come in reverse order." ["AL-SEQ-8", "AL-RI-9"];
    SlowTools "slow-tools" "A tool takes 30 ms." ["AL-SEQ-8"];
    ShellWithoutCallId "shell-without-call-id" "Local shell items have no call_id." ["AL-AMB-23"];
    ShellInProgress "shell-in-progress" "A local_shell_call is in progress." ["AL-RI-12"];

    // ---- approvals
    CallBeforeAsking "call-before-asking" "The call's item comes before the approval is requested." ["AL-AMB-21"] excludes ["call-while-asking"];
    CallWhileAsking "call-while-asking" "The call's item comes while the approval is pending." ["AL-AMB-21"] excludes ["idle-while-asking", "idle-before-asking"];
    NullPatch "null-patch" "applyPatch is null if there is no patch." ["AL-AP-17"];
    PatchHasMore "patch-has-more" "applyPatch has further fields." ["AL-AMB-13"];
    WrappedCommand "wrapped-command" "A command is shown as a shell command line." ["AL-AP-1"] excludes ["json-command"];
    JsonCommand "json-command" "A command is shown as a tool's name and its arguments as JSON." ["AL-AP-1"];
    ExplainsOnly "explains-only" "After explain, the request stays pending and is not sent again." ["AL-AMB-10"] excludes ["asks-before-explaining", "explains-slowly"];
    AsksBeforeExplaining "asks-before-explaining" "After explain, the request comes again, and then the explanation." ["AL-AMB-10"] excludes ["explains-slowly"];
    ExplainsSlowly "explains-slowly" "After explain, the explanation takes 20 ms, and the request comes again 20 ms later." ["AL-AMB-10"];
    DeniedInSilence "denied-in-silence" "A denied command has no item." ["AL-AP-8"] excludes ["denied-by-message"];
    DeniedByMessage "denied-by-message" "A denied command is reported by a system message." ["AL-AP-8", "AL-AP-15"];
    AlwaysByProgram "always-by-program" "always applies to every command of the same program." ["AL-AMB-11"];
    NoFinishAfterExit "no-exit-without-finish" "A turn that no-exit stops has no agent_finished." ["AL-AMB-09"] excludes ["no-exit-finishes-late", "no-exit-closes"];
    LateFinishAfterExit "no-exit-finishes-late" "agent_finished comes 100 ms after the loading_state false of no-exit." ["AL-AMB-09"] excludes ["no-exit-closes"];
    ClosesAfterExit "no-exit-closes" "The connection ends after no-exit." ["AL-AMB-09"] warns ["AL-AP-7"];
    ExitIsTold "no-exit-is-told" "A system message reports no-exit." ["AL-AMB-09"];
    SilentOnStray "silent-on-stray-approvals" "An approval_response without effect is not answered." ["AL-AMB-16"];

    // ---- the context, and what is refused
    RefusesToCompact "refuses-to-compact" "manual_compact is answered by an error when there is little to compact." ["AL-AMB-19"] excludes ["nothing-to-compact"];
    NothingToCompact "nothing-to-compact" "manual_compact changes nothing when there is little to compact." ["AL-AMB-19"];
    CompactsOften "compacts-often" "The context is compacted after every turn." ["AL-CTX-10"];
    CompactsWhenIdle "compacts-when-idle" "The context is compacted 50 ms after a turn, if nothing else has begun and that gains something." ["AL-CTX-10"] excludes ["nothing-to-compact"];
    LargeWindow "large-window" "The context window is so large that it never fills." ["AL-CTX-10"] excludes ["compacts-often"];
    CountsThePrompt "counts-the-prompt" "A system prompt counts towards the context." ["AL-CTX-4"];
    RoundedUsage "rounded-usage" "Percentages are too large by 0.1." ["AL-AMB-17", "AL-AMB-18"];
    WholeFloats "whole-floats" "Counts are written as 7.0." ["AL-CTX-4"];
    ReportsContext "reports-context" "context_info comes after every turn, too." ["AL-CTX-1"];
    SilentOnInvalid "silent-on-invalid" "Invalid messages are ignored." ["AL-AMB-15"]
        warns ["AL-ERR-2", "AL-ERR-3", "AL-ERR-4", "AL-UI-2", "AL-UI-3"];
    ClosesOnLargeInput "closes-on-large-input" "A message of more than half a megabyte ends the connection, with code 1009." ["AL-CON-12"];
}
