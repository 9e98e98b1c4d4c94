//! The deliberate defects, each with the requirements that it violates.

use crate::reference::faults::faults;

faults! {
    // ---- transport and JSON-RPC
    OriginsAreWelcome "origins-are-welcome" "An upgrade with an Origin is accepted." ["CX-TRN-5"];
    OwnOriginsAreWelcome "own-origins-are-welcome" "An upgrade with an Origin of the same host is accepted." ["CX-TRN-5"];
    FramesAreLists "frames-are-lists" "The usage of tokens comes as a list of one message." ["CX-TRN-1"];
    ErrorsHaveNoCode "errors-have-no-code" "A refusal has no code." ["CX-RPC-4"];
    UnknownMethodIsInvalid "unknown-method-is-invalid" "An unknown method is reported as an invalid request." ["CX-RPC-8"];
    BadParamsAreInvalidRequests "bad-params-are-invalid-requests" "Params of wrong types are reported as an invalid request." ["CX-RPC-9"];

    // ---- initialize
    NoHome "no-home" "initialize returns an empty home." ["CX-INI-3"];
    DoesBeforeInitialize "does-before-initialize" "fs is refused before initialize, but executed." ["CX-INI-6"];

    // ---- opting out and in
    OptsOutByPrefix "opts-out-by-prefix" "Names of notifications match from their beginning." ["CX-OPT-2", "CX-OPT-3"];
    WildcardsOptOut "wildcards-opt-out" "A name with a wildcard suppresses what it matches." ["CX-OPT-2", "CX-OPT-3"];
    ExperimentalFieldsForAll "experimental-fields-for-all" "Experimental fields need no opt-in." ["CX-EXP-2"];
    ExperimentalVariantsForAll "experimental-variants-for-all" "Experimental variants need no opt-in." ["CX-EXP-3"];

    // ---- threads
    EphemeralHasAPath "ephemeral-has-a-path" "An ephemeral thread has a path." ["CX-THR-9"];
    AnyPersonality "any-personality" "Any personality is accepted." ["CX-THR-11"];
    ResumeIgnoresOverrides "resume-ignores-overrides" "A resume ignores its overrides." ["CX-RES-6"];
    ResumeReturnsNoTurns "resume-returns-no-turns" "A resume returns no turns." ["CX-RES-7"];
    ForksUnknown "forks-unknown" "A fork of an unknown thread is a new one." ["CX-FRK-8"];
    ForksAreNeverEphemeral "forks-are-never-ephemeral" "A fork is never ephemeral." ["CX-FRK-7"];
    ForkedTurnsStayOpen "forked-turns-stay-open" "The open turn of the source is open in the fork." ["CX-FRK-9"];
    ForkEndsTheTurn "fork-ends-the-turn" "A fork ends the turn of its source." ["CX-FRK-10"];
    ForkIsNotTold "fork-is-not-told" "A fork sends no thread/started." ["CX-FRK-3"];

    // ---- lists
    NoNextCursor "no-next-cursor" "A list has no nextCursor." ["CX-LST-1"];
    PagesAreTooLong "pages-are-too-long" "A page has one thread more than limit." ["CX-LST-3"];
    PagesOverlap "pages-overlap" "A page begins with the last thread of the one before." ["CX-LST-4"];
    AlwaysACursor "always-a-cursor" "The last page has a cursor." ["CX-LST-5"];
    AlwaysByCreation "always-by-creation" "The sort key is ignored." ["CX-LST-7"];
    KindsAreIgnored "kinds-are-ignored" "sourceKinds restricts nothing." ["CX-LST-12"];
    EphemeralIsListed "ephemeral-is-listed" "Ephemeral threads are listed." ["CX-LST-15"];
    ListsHaveNoStatus "lists-have-no-status" "Every thread of a list is notLoaded." ["CX-LST-18"];
    ListsHaveNoNames "lists-have-no-names" "Threads of a list have no name." ["CX-DUR-5", "CX-NAM-4"];

    // ---- reading
    ReadAlwaysHasTurns "read-always-has-turns" "thread/read returns the turns unasked." ["CX-RD-2"];
    TurnsAreReadWithoutItems "turns-are-read-without-items" "Turns are read without their items." ["CX-DUR-3", "CX-FRK-5", "CX-RD-8"];

    // ---- names, the archive, subscriptions, metadata
    NamesLoadedOnly "names-loaded-only" "Only loaded threads can be named." ["CX-NAM-6"];
    NamesNeedATurn "names-need-a-turn" "A thread cannot be named before its first turn." ["CX-NAM-1"];
    ArchiveIsNotTold "archive-is-not-told" "thread/archive sends no thread/archived." ["CX-ARC-2"];
    ArchivesUnknown "archives-unknown" "An unknown thread can be archived." ["CX-ARC-7"];
    ArchiveLeavesTheFile "archive-leaves-the-file" "Archiving leaves the file where it is." ["CX-ARC-9"];
    UnarchiveDoesNothing "unarchive-does-nothing" "thread/unarchive leaves the thread in the archive." ["CX-ARC-6"];
    UnarchiveForgets "unarchive-forgets" "thread/unarchive empties the thread." ["CX-ARC-6"];
    UnsubscribeIsEmpty "unsubscribe-is-empty" "thread/unsubscribe returns {}." ["CX-UNS-1"];
    UnsubscribeDoesNothing "unsubscribe-does-nothing" "thread/unsubscribe changes nothing." ["CX-UNS-2", "CX-UNS-4"];
    EmptyMetadata "empty-metadata" "gitInfo without fields is an object." ["CX-MET-3"];

    // ---- shell, compaction, rollback
    ShellForUnknownThreads "shell-for-unknown-threads" "A user's command for an unknown thread is accepted." ["CX-SHL-5"];
    ShellAlwaysHasItsTurn "shell-always-has-its-turn" "A user's command in a turn waits for one of its own." ["CX-SHL-3"];

    // ---- turns
    AnyInput "any-input" "Input of any type is accepted." ["CX-TUR-11"];
    UserMessagesHaveTextOnly "user-messages-have-text-only" "A userMessage has no images." ["CX-ITM-8", "CX-TUR-12"];
    UserMessagesHaveTheFirstInput "user-messages-have-the-first-input" "A userMessage has the first of several inputs." ["CX-ITM-8", "CX-TUR-12", "CX-TUR-9"];
    TurnIgnoresSandbox "turn-ignores-sandbox" "turn/start ignores the sandbox policy." ["CX-TUR-25"];
    TurnsEndWithTheirClient "turns-end-with-their-client" "A turn ends when it has no more subscribers." ["CX-UNS-5"];

    // ---- steering and interrupting
    SteersAnyTurn "steers-any-turn" "turn/steer needs no expectedTurnId." ["CX-STR-3", "CX-STR-5"];
    SteersAnotherTurn "steers-another-turn" "turn/steer takes any expectedTurnId." ["CX-STR-5"];
    SteersUnknownThreads "steers-unknown-threads" "turn/steer on an unknown thread is answered." ["CX-STR-9"];
    InterruptWaitsForCommands "interrupt-waits-for-commands" "An interrupted turn waits for its command." ["CX-INT-2"];

    // ---- items
    MessagesAreCompletedTwice "messages-are-completed-twice" "A message is completed twice." ["CX-ITM-4"];
    DeltasAfterTheEnd "deltas-after-the-end" "A delta of no item follows a message." ["CX-ITM-2"];
    NoDurations "no-durations" "A command has no duration." ["CX-ITM-13"];
    FirstOutputIsNotTold "first-output-is-not-told" "What a command prints first is in no delta." ["CX-ITM-15"];
    TurnDiffIsEmpty "turn-diff-is-empty" "The turn's diff is empty." ["CX-ITM-23"];
    NoPlans "no-plans" "The plan is not sent." ["CX-ITM-24"];

    // ---- status and usage
    FailedStaysActive "failed-stays-active" "A thread whose turn has failed stays active." ["CX-STA-10"];
    InterruptedStaysActive "interrupted-stays-active" "A thread whose turn was interrupted stays active." ["CX-STA-4", "CX-STA-8"];
    NoUsage "no-usage" "The usage of tokens is not reported." ["CX-USE-1"];

    // ---- errors of the model
    FailsInSilence "fails-in-silence" "An error of the model is not reported by error." ["CX-ERR-1"];
    FailedHasNoError "failed-has-no-error" "A failed turn has no error." ["CX-ERR-3"];
    ErrorsAreUnknown "errors-are-unknown" "codexErrorInfo is not listed." ["CX-ERR-5"];

    // ---- approvals
    AcceptIsForSession "accept-is-for-session" "accept holds for the session." ["CX-APR-20"];
    SessionIsForAllCommands "session-is-for-all-commands" "acceptForSession of one command allows all." ["CX-APR-7"];
    DeclineIsRemembered "decline-is-remembered" "A declined command is not asked about again, and runs." ["CX-APR-8"];
    DeclinedIsCompleted "declined-is-completed" "A declined command stays in progress." ["CX-ITM-28"];
    CancelDeclines "cancel-declines" "cancel declines, and the turn continues." ["CX-APR-9", "CX-FCH-5"];
    NoDecisionAllows "no-decision-allows" "An answer without a decision allows the command." ["CX-APR-19"];
    DecisionsIgnoreCase "decisions-ignore-case" "A decision in capital letters counts." ["CX-APR-19"];
    StrangersMayAnswer "strangers-may-answer" "Any connection may answer." ["CX-RPC-15"];
    CancelledChangesAreMade "cancelled-changes-are-made" "A cancelled change is made." ["CX-FCH-5"];

    // ---- files
    MissingFilesAreEmpty "missing-files-are-empty" "A file that is not there is read as an empty one." ["CX-FS-20"];
    FilesAreText "files-are-text" "A file that is not UTF-8 is changed by reading it." ["CX-FS-4"];
    WritesAppend "writes-append" "Writing appends." ["CX-FS-3", "CX-FS-4"];
    TimesAreSeconds "times-are-seconds" "Times are sent in seconds." ["CX-FS-9"];
    MissingFoldersAreEmpty "missing-folders-are-empty" "A directory that is not there is an empty one." ["CX-FS-20"];
    TreesAreNotRemoved "trees-are-not-removed" "A tree is removed only if asked for." ["CX-FS-12"];
    MissingIsNeverRemoved "missing-is-never-removed" "What is not there cannot be removed." ["CX-FS-14"];
    AlwaysCopiesTrees "always-copies-trees" "A tree is copied without recursive." ["CX-FS-16"];
    RelativePathsAreFine "relative-paths-are-fine" "A relative path begins at the root." ["CX-FS-18"];
    WatchReturnsTheName "watch-returns-the-name" "fs/watch returns the name of the file." ["CX-FS-21"];
    ChangesAreRelative "changes-are-relative" "Changed paths are names." ["CX-FS-26"];
    ChangesAreToldToAll "changes-are-told-to-all" "Changes are reported to all connections." ["CX-FS-24"];
    UnwatchEndsAll "unwatch-ends-all" "fs/unwatch ends all watches of the connection." ["CX-FS-22"];

    // ---- command/exec
    ExecHasNoStderr "exec-has-no-stderr" "The result has no stderr." ["CX-EXE-1"];
    EmptyCommandsRun "empty-commands-run" "An empty command is accepted." ["CX-EXE-3"];
    TimeoutsMayContradict "timeouts-may-contradict" "disableTimeout with timeoutMs is accepted." ["CX-EXE-8"];
    CapsAreIgnored "caps-are-ignored" "outputBytesCap is ignored." ["CX-EXE-10", "CX-EXE-27"];
    CapIsShared "cap-is-shared" "outputBytesCap bounds both streams together." ["CX-EXE-10"];
    NoDefaultCap "no-default-cap" "Without outputBytesCap nothing is bounded." ["CX-EXE-11"];
    DeltasAreAllStdout "deltas-are-all-stdout" "Output deltas of stderr are reported as stdout." ["CX-EXE-18"];
    WritesOfNothing "writes-of-nothing" "A write of nothing is accepted." ["CX-EXE-20"];
    TerminatedSucceeds "terminated-succeeds" "A process that was ended has the exit code 0." ["CX-EXE-21"];
    AnythingIsResized "anything-is-resized" "A process without a terminal can be resized." ["CX-EXE-23"];
    ProcessesAreShared "processes-are-shared" "Another connection can write to a process, and end it." ["CX-EXE-24"];
    CapIsNotTold "cap-is-not-told" "capReached is never true." ["CX-EXE-27"];
    TerminalsHaveStderr "terminals-have-stderr" "Output of a terminal is reported as stderr, too." ["CX-EXE-28"];
    NoTerminals "no-terminals" "tty gives no terminal." ["CX-EXE-28", "CX-EXE-29"];
    WorkspaceIsEverything "workspace-is-everything" "workspaceWrite lets a command write everywhere." ["CX-EXE-30"];
    ProcessIdsRepeat "process-ids-repeat" "A processId that is in use is accepted." ["CX-EXE-34"];

    // ---- durability
    NamesAreNotStored "names-are-not-stored" "Names are not stored." ["CX-DUR-5"];
    ArchiveIsNotStored "archive-is-not-stored" "The archive is not stored." ["CX-DUR-5"];
    OpenTurnsStayOpen "open-turns-stay-open" "A turn that was open stays in progress." ["CX-DUR-6"];
    KeepsEphemeral "keeps-ephemeral" "Ephemeral threads are stored." ["CX-DUR-7"];

    @unlisted {
        BinaryFrames UnderstandsBinary Versions AnswersTwice IdsAsText ResultBesideError
        NotificationsHaveIds AnswersNotifications UnknownMethodsAreFine MissingParamsAreInternal
        BrokenJsonIsIgnored BrokenJsonCloses NoRequestIsIgnored ParamsAreNeeded RefusalsEndSubscriptions
        UnaskedAnswersAreRefused ExecBlocks NoUserAgent NoPlatform InitializeIsEmpty WorksBeforeInitialize
        ListsBeforeInitialize FilesBeforeInitialize OtherWordsBeforeInitialize InitializesTwice
        OtherWordsForTheSecond SecondAgreementCounts InitializesForAll AnybodyMayInitialize
        RefusedInitializeCounts IgnoresOptOut NoOptOutOfItems OptOutIsForAll OptOutOfRequests
        ExperimentalMethodsForAll ExperimentalIsNotNamed OptInIsForAll ThreadsHaveNoProvider
        NewThreadsHaveAPreview StartIsNotTold StartedHasNoStatus StartedTwice StartDoesNotSubscribe
        EphemeralByDefault TrustsNothing StartIgnoresCwd StartIgnoresPolicy StartIgnoresSandbox
        StatusAfterTheStart ActiveBeforeItsStart ResumesUnknown ResumeForgetsTheModel ResumeForgetsHistory
        ResumeDoesNotSubscribe ResumeIsAnnounced ResumeIsToldToOthers ForksAreEmpty ForksNameNoSource
        ForkDoesNotSubscribe CursorsAreIgnored NeverACursor OldestFirst AnySortKey ArchiveIsListed
        ArchivedListsAll CwdIsAPrefix CwdIsIgnored SearchIgnoresCase ProvidersAreIgnored
        NoProvidersListNothing NoKindsListNothing ListsHaveNoPreview LoadedThreadsAreObjects
        StoredCountsAsLoaded EphemeralIsNotLoaded ReadsUnknown ReadLoads ReadSubscribes
        TurnsAreReadBackwards CommandsAreNotRead UserMessagesAreNotRead InterruptedIsReadAsCompleted
        ReadStatusIsIdle NamesAreNotTold NameUpdatedIsEmpty NamesAreToldToSubscribers FirstNameStays
        NamesAreUnique NamesUnknown ArchivedHasNoThread ArchivedStaysLoaded UnarchiveIsNotTold
        UnarchivesAnything NotLoadedIsNotSubscribed AlwaysUnsubscribed UnsubscribesEverybody
        UnsubscribeUnloads MetadataReplaces NullsKeepMetadata MetadataIsNotStored CompactionHasNoItem
        CompactionChangesItsId CompactionIsAnsweredLate ShellIsTheAgents ShellIsSandboxed ShellIsAskedAbout
        RollsBackTheFirst RollbackIsNotStored TurnIsAnsweredAtItsEnd StartNamesAnotherTurn
        StartedNamesAnotherTurn TurnsStartCompleted TurnsHaveNoThread TurnsStartTwice TurnsDoNotStart
        TurnsDoNotEnd TurnsEndTwice TurnsEndDone TurnIdsRepeat TurnsOfUnknownThreads InputMayBeMissing
        ImagesAreRefused ModelGetsTheFirstInput NoUserMessages UserMessagesAreText TurnsOverlap
        QueuedTurnsAreForgotten OverridesAreForOneTurn TurnIgnoresCwd NeverIsAsked TellsEverybody
        TellsTheFirstOnly SteersNothing SteerRefusedAsParams SteerReturnsAnotherTurn SteerStartsATurn
        SteerAddsNothing SteerTakesOverrides RefusedSteerAddsInput RefusedSteerEndsTheTurn
        InterruptIsNotAnswered InterruptDoesNothing InterruptNeedsNoTurn InterruptsAnyTurn
        OnlyTheFirstInterrupts InterruptedIsCompleted InterruptedTurnsDoNotEnd ItemsAfterTheTurn
        MessagesAreNotStarted BrokenOffMessagesStayOpen ReasoningStaysOpen CommandsStayOpen DeltasOutOfOrder
        DeltasAreTrimmed DeltasAreAscii DeltasAreCumulative NoDeltas ItemsHaveNoType MessagesHaveNoText
        MessagesAreEmptyAtTheEnd ReasoningHasNoContent ReasoningHasNoIndex MessagesChangeTheirType
        UnknownItems ItemIdsRepeat ItemsHaveNoTurn ItemsNameAnotherThread CommandsHaveNoFolder
        CommandsStartCompleted CommandsAreDone CommandsStayInProgress NoExitCodes OutputIsCut
        ChangesHaveNoDiff NoTurnDiff PlanStatusesAreTheModels StatusIsAText StatusHasNoThread NeverActive
        NeverIdle StatusTwice StaysActive UsageHasNoTotal TotalsAreTheLast UsageDoesNotAddUp
        FailedIsCompleted ErrorsDiffer NoHttpStatus FailureHitsAllThreads BadRequestIsOther
        CompletedHasAnError AsksNobody AsksAboutEverything AsksEverybody AsksTheFirstOnly
        CommandsAreShownAfterTheRequest RequestsHaveNoId RequestIdsRepeat RequestsHaveNoTurn
        RequestsNameAnotherItem RequestsHaveNoCommand RequestsHaveNoReason UnknownDecisionsAreOffered
        AdditionalPermissions RunsBeforeTheAnswer UnansweredEndsTheTurn AcceptedDoesNotRun SessionIsOnce
        SessionIsForAllThreads AmendmentsAreForgotten DeclinedRuns DeclineCancels DeclinedIsFailed
        CancelAccepts ErrorsAllow UnknownDecisionsAllow TrueAllows ResolvesNothing ResolvesTwice
        ResolvesLate ResolvesAsText ResolvesAnotherThread InterruptResolvesNothing InterruptRunsTheCommand
        InterruptedCommandsStayOpen LateAnswersCount AnswersOfAnyType AnswersDecideTheOldest
        ChangesAreNotAskedAbout ChangesAreNotShown ChangesBeforeTheAnswer AcceptedChangesAreNotMade
        DeclinedChangesAreMade DeclinedChangesFail ChangesAreAcceptedOnce FailedChangesAreCompleted
        ToolCallsAreShownLate ToolResultsAreLost LargeFilesAreCut EmptyWritesAreIgnored AnyBase64
        ParentsAreNotMade ParentsAreAlwaysMade FoldersAreFiles ModifiedIsCreated FoldersListThemselves
        NamesArePaths RemovesNothing AlwaysRemovesTrees MissingIsAlwaysRemoved CopyMoves CopyLeavesAFolder
        CopiesFoldersOnly CopyFollowsLinks ChangesAreNotTold ChangesNameTheFolder UnwatchDoesNothing
        UnwatchReachesOthers OutputIsTrimmed StreamsAreMixed ExitCodesAreLost ExecIgnoresCwd EnvReplaces
        EnvIsIgnored NullsAreEmpty TimeoutsAreIgnored CapsMayContradict CapIsAlwaysThere
        StreamsNeedNoProcess SizeNeedsNoTerminal DeltasAreText StreamedOutputIsRepeated
        DeltasComeAfterTheResponse DeltasNameNoProcess DeltasGoToAll InputIsLost StdinStaysOpen
        TerminateDoesNothing TerminateEndsAll EndedProcessesTakeAll ProcessesOutliveTheirConnection
        SizeIsIgnored ResizeDoesNothing ExecHasNoSandbox ExecNeverWrites ExecStartsAThread
        ExecIsAnsweredAtOnce BufferedCommandsAreNotEnded LastTurnIsNotStored ItemsAreNotStored MetadataDies
        PolicyIsNotStored
    }
}
