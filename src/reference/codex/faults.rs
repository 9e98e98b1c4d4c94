//! The deliberate defects, each with the requirements that it violates.

use crate::reference::faults::faults;

faults! {
    // ---- transport and JSON-RPC
    FramesAreLists "frames-are-lists" "The usage of tokens comes as a list of one message." ["CX-TRN-1"];
    ErrorsHaveNoCode "errors-have-no-code" "A refusal has no code." ["CX-RPC-4"];
    BadParamsAreInvalidRequests "bad-params-are-invalid-requests" "Params of wrong types are called an invalid request." ["CX-RPC-9"];

    // ---- opting out and in
    WildcardsOptOut "wildcards-opt-out" "A name with a wildcard suppresses what it matches." ["CX-OPT-2", "CX-OPT-3"];

    // ---- threads
    EphemeralHasAPath "ephemeral-has-a-path" "An ephemeral thread has a path." ["CX-THR-9"];
    AnyPersonality "any-personality" "Any personality is taken." ["CX-THR-11"];
    ResumeIgnoresOverrides "resume-ignores-overrides" "A resume passes over its overrides." ["CX-RES-6"];

    // ---- lists
    KindsAreIgnored "kinds-are-ignored" "sourceKinds restricts nothing." ["CX-LST-12"];
    ListsHaveNoStatus "lists-have-no-status" "Every thread of a list is notLoaded." ["CX-LST-18"];
    ListsHaveNoNames "lists-have-no-names" "Threads of a list have no name." ["CX-DUR-5", "CX-NAM-4"];

    // ---- names, the archive, subscriptions, metadata
    ArchiveLeavesTheFile "archive-leaves-the-file" "Archiving leaves the file where it is." ["CX-ARC-9"];
    UnarchiveForgets "unarchive-forgets" "thread/unarchive empties the thread." ["CX-ARC-6"];
    UnsubscribeIsEmpty "unsubscribe-is-empty" "thread/unsubscribe returns {}." ["CX-UNS-1"];
    UnsubscribeDoesNothing "unsubscribe-does-nothing" "thread/unsubscribe changes nothing." ["CX-UNS-2", "CX-UNS-4"];

    // ---- turns
    TurnIgnoresSandbox "turn-ignores-sandbox" "turn/start passes over the sandbox policy." ["CX-TUR-25"];

    // ---- steering and interrupting
    SteersUnknownThreads "steers-unknown-threads" "turn/steer on an unknown thread is answered." ["CX-STR-9"];

    // ---- status and usage
    NoUsage "no-usage" "The usage of tokens is not told." ["CX-USE-1"];

    // ---- approvals
    AcceptIsForSession "accept-is-for-session" "accept holds for the session." ["CX-APR-20"];
    CancelDeclines "cancel-declines" "cancel declines, and the turn goes on." ["CX-APR-9", "CX-FCH-5"];
    NoDecisionAllows "no-decision-allows" "An answer without a decision allows the command." ["CX-APR-19"];
    CancelledChangesAreMade "cancelled-changes-are-made" "A cancelled change is made." ["CX-FCH-5"];

    // ---- files
    TimesAreSeconds "times-are-seconds" "Times are told in seconds." ["CX-FS-9"];
    MissingIsNeverRemoved "missing-is-never-removed" "What is not there cannot be removed." ["CX-FS-14"];
    AlwaysCopiesTrees "always-copies-trees" "A tree is copied without recursive." ["CX-FS-16"];
    ChangesAreToldToAll "changes-are-told-to-all" "Changes are told to all connections." ["CX-FS-24"];
    UnwatchEndsAll "unwatch-ends-all" "fs/unwatch ends all watches of the connection." ["CX-FS-22"];

    // ---- command/exec
    ExecHasNoStderr "exec-has-no-stderr" "The result has no stderr." ["CX-EXE-1"];
    EmptyCommandsRun "empty-commands-run" "An empty command is taken." ["CX-EXE-3"];
    WritesOfNothing "writes-of-nothing" "A write of nothing is taken." ["CX-EXE-20"];
    ProcessesAreShared "processes-are-shared" "Another connection can write to a process, and end it." ["CX-EXE-24"];
    ProcessIdsRepeat "process-ids-repeat" "A processId that is in use is taken." ["CX-EXE-34"];

    // ---- durability
    KeepsEphemeral "keeps-ephemeral" "Ephemeral threads are stored." ["CX-DUR-7"];

    @unlisted {
        OriginsAreWelcome OwnOriginsAreWelcome BinaryFrames UnderstandsBinary Versions AnswersTwice
        IdsAsText ResultBesideError NotificationsHaveIds AnswersNotifications UnknownMethodsAreFine
        UnknownMethodIsInvalid MissingParamsAreInternal BrokenJsonIsIgnored BrokenJsonCloses
        NoRequestIsIgnored ParamsAreNeeded RefusalsEndSubscriptions UnaskedAnswersAreRefused ExecBlocks
        NoUserAgent NoHome NoPlatform InitializeIsEmpty WorksBeforeInitialize ListsBeforeInitialize
        FilesBeforeInitialize DoesBeforeInitialize OtherWordsBeforeInitialize InitializesTwice
        OtherWordsForTheSecond SecondAgreementCounts InitializesForAll AnybodyMayInitialize
        RefusedInitializeCounts IgnoresOptOut OptsOutByPrefix NoOptOutOfItems OptOutIsForAll
        OptOutOfRequests ExperimentalMethodsForAll ExperimentalIsNotNamed ExperimentalFieldsForAll
        ExperimentalVariantsForAll OptInIsForAll ThreadsHaveNoProvider NewThreadsHaveAPreview StartIsNotTold
        StartedHasNoStatus StartedTwice StartDoesNotSubscribe EphemeralByDefault TrustsNothing
        StartIgnoresCwd StartIgnoresPolicy StartIgnoresSandbox StatusAfterTheStart ActiveBeforeItsStart
        ResumesUnknown ResumeForgetsTheModel ResumeForgetsHistory ResumeDoesNotSubscribe ResumeIsAnnounced
        ResumeIsToldToOthers ResumeReturnsNoTurns ForksUnknown ForksAreNeverEphemeral ForksAreEmpty
        ForksNameNoSource ForkedTurnsStayOpen ForkEndsTheTurn ForkDoesNotSubscribe ForkIsNotTold
        NoNextCursor PagesAreTooLong PagesOverlap CursorsAreIgnored AlwaysACursor NeverACursor OldestFirst
        AlwaysByCreation AnySortKey ArchiveIsListed ArchivedListsAll CwdIsAPrefix CwdIsIgnored
        SearchIgnoresCase ProvidersAreIgnored NoProvidersListNothing NoKindsListNothing EphemeralIsListed
        ListsHaveNoPreview LoadedThreadsAreObjects StoredCountsAsLoaded EphemeralIsNotLoaded ReadsUnknown
        ReadAlwaysHasTurns ReadLoads ReadSubscribes TurnsAreReadBackwards TurnsAreReadWithoutItems
        CommandsAreNotRead UserMessagesAreNotRead InterruptedIsReadAsCompleted ReadStatusIsIdle
        NamesAreNotTold NameUpdatedIsEmpty NamesAreToldToSubscribers FirstNameStays NamesAreUnique
        NamesLoadedOnly NamesNeedATurn NamesUnknown ArchiveIsNotTold ArchivedHasNoThread ArchivesUnknown
        ArchivedStaysLoaded UnarchiveIsNotTold UnarchivesAnything UnarchiveDoesNothing
        NotLoadedIsNotSubscribed AlwaysUnsubscribed UnsubscribesEverybody UnsubscribeUnloads
        MetadataReplaces NullsKeepMetadata EmptyMetadata MetadataIsNotStored CompactionHasNoItem
        CompactionChangesItsId CompactionIsAnsweredLate ShellForUnknownThreads ShellIsTheAgents
        ShellAlwaysHasItsTurn ShellIsSandboxed ShellIsAskedAbout RollsBackTheFirst RollbackIsNotStored
        TurnIsAnsweredAtItsEnd StartNamesAnotherTurn StartedNamesAnotherTurn TurnsStartCompleted
        TurnsHaveNoThread TurnsStartTwice TurnsDoNotStart TurnsDoNotEnd TurnsEndTwice TurnsEndDone
        TurnIdsRepeat TurnsOfUnknownThreads InputMayBeMissing AnyInput ImagesAreRefused
        ModelGetsTheFirstInput NoUserMessages UserMessagesAreText UserMessagesHaveTextOnly
        UserMessagesHaveTheFirstInput TurnsOverlap QueuedTurnsAreForgotten OverridesAreForOneTurn
        TurnIgnoresCwd NeverIsAsked TellsEverybody TellsTheFirstOnly TurnsEndWithTheirClient SteersAnyTurn
        SteersAnotherTurn SteersNothing SteerRefusedAsParams SteerReturnsAnotherTurn SteerStartsATurn
        SteerAddsNothing SteerTakesOverrides RefusedSteerAddsInput RefusedSteerEndsTheTurn
        InterruptIsNotAnswered InterruptDoesNothing InterruptNeedsNoTurn InterruptsAnyTurn
        OnlyTheFirstInterrupts InterruptWaitsForCommands InterruptedIsCompleted InterruptedTurnsDoNotEnd
        ItemsAfterTheTurn MessagesAreNotStarted BrokenOffMessagesStayOpen ReasoningStaysOpen
        CommandsStayOpen MessagesAreCompletedTwice DeltasAfterTheEnd DeltasOutOfOrder DeltasAreTrimmed
        DeltasAreAscii DeltasAreCumulative NoDeltas ItemsHaveNoType MessagesHaveNoText
        MessagesAreEmptyAtTheEnd ReasoningHasNoContent ReasoningHasNoIndex MessagesChangeTheirType
        UnknownItems ItemIdsRepeat ItemsHaveNoTurn ItemsNameAnotherThread CommandsHaveNoFolder
        CommandsStartCompleted CommandsAreDone CommandsStayInProgress NoExitCodes NoDurations OutputIsCut
        FirstOutputIsNotTold ChangesHaveNoDiff NoTurnDiff TurnDiffIsEmpty NoPlans PlanStatusesAreTheModels
        StatusIsAText StatusHasNoThread NeverActive NeverIdle StatusTwice StaysActive FailedStaysActive
        InterruptedStaysActive UsageHasNoTotal TotalsAreTheLast UsageDoesNotAddUp FailsInSilence
        FailedIsCompleted FailedHasNoError ErrorsDiffer ErrorsAreUnknown NoHttpStatus FailureHitsAllThreads
        BadRequestIsOther CompletedHasAnError AsksNobody AsksAboutEverything AsksEverybody AsksTheFirstOnly
        CommandsAreShownAfterTheRequest RequestsHaveNoId RequestIdsRepeat RequestsHaveNoTurn
        RequestsNameAnotherItem RequestsHaveNoCommand RequestsHaveNoReason UnknownDecisionsAreOffered
        AdditionalPermissions RunsBeforeTheAnswer UnansweredEndsTheTurn AcceptedDoesNotRun SessionIsOnce
        SessionIsForAllCommands SessionIsForAllThreads AmendmentsAreForgotten DeclinedRuns
        DeclineIsRemembered DeclineCancels DeclinedIsFailed DeclinedIsCompleted CancelAccepts ErrorsAllow
        UnknownDecisionsAllow DecisionsIgnoreCase TrueAllows ResolvesNothing ResolvesTwice ResolvesLate
        ResolvesAsText ResolvesAnotherThread InterruptResolvesNothing InterruptRunsTheCommand
        InterruptedCommandsStayOpen LateAnswersCount AnswersOfAnyType AnswersDecideTheOldest
        StrangersMayAnswer ChangesAreNotAskedAbout ChangesAreNotShown ChangesBeforeTheAnswer
        AcceptedChangesAreNotMade DeclinedChangesAreMade DeclinedChangesFail ChangesAreAcceptedOnce
        FailedChangesAreCompleted ToolCallsAreShownLate ToolResultsAreLost MissingFilesAreEmpty FilesAreText
        LargeFilesAreCut WritesAppend EmptyWritesAreIgnored AnyBase64 ParentsAreNotMade ParentsAreAlwaysMade
        FoldersAreFiles ModifiedIsCreated FoldersListThemselves NamesArePaths MissingFoldersAreEmpty
        RemovesNothing TreesAreNotRemoved AlwaysRemovesTrees MissingIsAlwaysRemoved CopyMoves
        CopyLeavesAFolder CopiesFoldersOnly CopyFollowsLinks RelativePathsAreFine WatchReturnsTheName
        ChangesAreNotTold ChangesAreRelative ChangesNameTheFolder UnwatchDoesNothing UnwatchReachesOthers
        OutputIsTrimmed StreamsAreMixed ExitCodesAreLost ExecIgnoresCwd EnvReplaces EnvIsIgnored
        NullsAreEmpty TimeoutsAreIgnored TimeoutsMayContradict CapsMayContradict CapsAreIgnored CapIsShared
        NoDefaultCap CapIsAlwaysThere StreamsNeedNoProcess SizeNeedsNoTerminal DeltasAreText
        StreamedOutputIsRepeated DeltasComeAfterTheResponse DeltasNameNoProcess DeltasAreAllStdout
        DeltasGoToAll InputIsLost StdinStaysOpen TerminateDoesNothing TerminateEndsAll TerminatedSucceeds
        EndedProcessesTakeAll AnythingIsResized ProcessesOutliveTheirConnection CapIsNotTold
        TerminalsHaveStderr NoTerminals SizeIsIgnored ResizeDoesNothing ExecHasNoSandbox ExecNeverWrites
        WorkspaceIsEverything ExecStartsAThread ExecIsAnsweredAtOnce BufferedCommandsAreNotEnded
        LastTurnIsNotStored ItemsAreNotStored NamesAreNotStored ArchiveIsNotStored MetadataDies
        PolicyIsNotStored OpenTurnsStayOpen
    }
}
