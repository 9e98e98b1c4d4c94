//! The second half of the table of deliberate defects.

/// Makes one table of the rows that are given and those here.
macro_rules! and_more {
    ($($rows:tt)*) => {
        crate::reference::faults::faults! {
            $($rows)*

            // ---- transport and JSON-RPC
            BinaryIsText "binary-is-text" "A binary frame is a message." ["CX-TRN-10"];
            NegativeIdsAreRefused "negative-ids-are-refused" "A request with a negative id is refused." ["CX-RPC-12", "CX-RPC-2"];
            SlowRequestsHoldUp "slow-requests-hold-up" "While a command of command/exec runs, lists of loaded threads wait." ["CX-RPC-13"];
            RequestIdsRepeat "request-ids-repeat" "All requests of the server have one id." ["CX-RPC-16"];
            IdsOfBothSidesMeet "ids-of-both-sides-meet" "A request with the id of a pending one of the server answers it." ["CX-RPC-20"];
            CapabilitiesAreNeeded "capabilities-are-needed" "initialize with capabilities null is refused." ["CX-INI-13"];
            UnknownNamesAreRefused "unknown-names-are-refused" "optOutNotificationMethods may have known names only." ["CX-INI-1", "CX-OPT-4"];
            OptOutOfErrors "opt-out-of-errors" "Who opts out of error gets no refusals." ["CX-OPT-6"];
            OptInIsIgnored "opt-in-is-ignored" "Experimental methods are refused with the opt-in, too." ["CX-EXP-4"];
            RefusedStartsAThread "refused-starts-a-thread" "thread/start with an experimental field is refused without the opt-in, and starts a thread." ["CX-EXP-7"];

            // ---- threads
            StartReturnsNull "start-returns-null" "thread/start returns null." ["CX-THR-1"];
            ResumeReturnsNull "resume-returns-null" "thread/resume returns null." ["CX-RES-1"];
            ForkReturnsNull "fork-returns-null" "thread/fork returns null." ["CX-FRK-1"];
            ReadReturnsNull "read-returns-null" "thread/read returns null." ["CX-RD-1"];
            ReadHasNoStatus "read-has-no-status" "A thread that is read has no status." ["CX-RD-7"];
            ArchiveReturnsNull "archive-returns-null" "thread/archive returns null." ["CX-ARC-1"];
            UnarchiveReturnsNothing "unarchive-returns-nothing" "thread/unarchive returns an empty object." ["CX-ARC-4"];
            StartsAreNotTold "starts-are-not-told" "thread/start sends no thread/started." ["CX-INI-8", "CX-OPT-2", "CX-OPT-3", "CX-STA-6", "CX-THR-4"];
            StartedHasNoStatus "started-has-no-status" "thread/started has no status." ["CX-THR-5"];
            EmptyThreadsAreReused "empty-threads-are-reused" "thread/start returns a thread of the connection that has had no turn yet." ["CX-THR-7"];
            EphemeralIsNotTold "ephemeral-is-not-told" "An ephemeral thread is reported as one that is stored." ["CX-FRK-7", "CX-THR-10", "CX-THR-9"];
            NoClearStarts "no-clear-starts" "The session start source clear is refused." ["CX-THR-12"];
            SandboxesAreInKebabCase "sandboxes-are-in-kebab-case" "The sandbox workspaceWrite is refused." ["CX-THR-13"];
            PoliciesAreInKebabCase "policies-are-in-kebab-case" "The approval policy unlessTrusted is refused." ["CX-TUR-22"];
            FreshIsNotLoaded "fresh-is-not-loaded" "A thread that has had no turn is not listed as loaded." ["CX-LDD-1", "CX-LDD-2", "CX-THR-15"];
            StartIgnoresSandbox "start-ignores-sandbox" "thread/start ignores the sandbox." ["CX-ITM-16", "CX-THR-18"];
            ResumesUnknown "resumes-unknown" "thread/resume of an unknown thread starts one." ["CX-DUR-7", "CX-RES-5"];
            UnsubscribedForGood "unsubscribed-for-good" "Who has unsubscribed cannot subscribe again." ["CX-RES-9"];
            ForkFollowsNothing "fork-follows-nothing" "thread/fork does not subscribe." ["CX-FRK-4", "CX-TUR-4"];
            ListsLeaveOutTheStatus "lists-leave-out-the-status" "Threads of a list have no status." ["CX-LST-13"];
            ListsLeaveOutTheTime "lists-leave-out-the-time" "Threads of a list have no updatedAt." ["CX-LST-14"];
            ReadsUnknown "reads-unknown" "An unknown thread is read as an empty one." ["CX-DUR-7", "CX-OPT-6", "CX-RD-6"];
            ShellIsAnsweredLate "shell-is-answered-late" "thread/shellCommand is answered when the command has ended." ["CX-SHL-1"];
            RestartHidesThreads "restart-hides-threads" "After a restart only loaded threads are listed." ["CX-DUR-1", "CX-DUR-5"];

            // ---- turns and items
            TurnsAreReturnedPending "turns-are-returned-pending" "turn/start returns a turn with the status pending." ["CX-TUR-1"];
            TurnIdsRepeat "turn-ids-repeat" "All turns of a thread have one id." ["CX-TUR-7", "CX-TUR-8"];
            QueuedTurnsAreForgotten "queued-turns-are-forgotten" "turn/start during a turn is answered, and the turn never begins." ["CX-TUR-13"];
            OneThreadAtATime "one-thread-at-a-time" "turn/start is refused while another thread of the connection has a turn." ["CX-TUR-1", "CX-TUR-15"];
            RefusedSteersAdd "refused-steers-add" "A turn/steer that is refused adds its input." ["CX-STR-6", "CX-STR-7"];
            SteersTakeOverrides "steers-take-overrides" "Overrides of turn/steer hold." ["CX-STR-8", "CX-TUR-4"];
            StaleInterruptsWait "stale-interrupts-wait" "turn/interrupt of a turn that has completed interrupts the next one." ["CX-INT-4"];
            InterruptedThreadsAreDead "interrupted-threads-are-dead" "A thread takes no turn after an interrupted one." ["CX-INT-5", "CX-TUR-1"];
            InterruptedTurnsGoOn "interrupted-turns-go-on" "A message follows the end of an interrupted turn." ["CX-APR-17", "CX-INT-6"];
            TextIsAscii "text-is-ascii" "Messages have question marks for what is not ASCII." ["CX-ITM-27", "CX-RD-8"];
            AnswersAreOneItem "answers-are-one-item" "All answers of the model in a turn are one message." ["CX-APR-8", "CX-FAN-4", "CX-ITM-29", "CX-ITM-3"];
            FailedThreadsAreDead "failed-threads-are-dead" "A thread takes no turn after a failed one." ["CX-ERR-7"];
            FailuresSpread "failures-spread" "A turn that fails interrupts that of the connection's other thread." ["CX-ERR-8"];
            StartsTellTheirStatus "starts-tell-their-status" "thread/start sends thread/status/changed." ["CX-STA-3", "CX-STA-7", "CX-THR-6"];

            // ---- approvals
            NothingIsAskedAbout "nothing-is-asked-about" "Commands need no approval." ["CX-APR-1", "CX-APR-21", "CX-APR-27", "CX-APR-3", "CX-DUR-2", "CX-OPT-7", "CX-SHL-3", "CX-STR-1", "CX-STR-6", "CX-STR-8", "CX-TUR-4"];
            AcceptedRunInTheSandbox "accepted-run-in-the-sandbox" "A command that was accepted runs in the sandbox." ["CX-APR-10", "CX-APR-21", "CX-APR-28", "CX-APR-6", "CX-APR-7", "CX-FS-1"];
            RunsBeforeTheAnswer "runs-before-the-answer" "A command runs before it is asked about, too." ["CX-APR-14", "CX-APR-15", "CX-APR-16", "CX-APR-17", "CX-APR-18", "CX-APR-19", "CX-APR-20", "CX-APR-21", "CX-APR-27", "CX-APR-28", "CX-APR-6", "CX-APR-7", "CX-APR-8", "CX-APR-9", "CX-RPC-15"];
            LateAnswersCount "late-answers-count" "What is accepted after its request was resolved is not asked about again." ["CX-APR-17"];
            AcceptedNeverFail "accepted-never-fail" "A command that was accepted is always completed." ["CX-APR-25", "CX-ITM-14"];
            ResolvedIsToldToOne "resolved-is-told-to-one" "serverRequest/resolved goes to one of the clients that were asked." ["CX-APR-11", "CX-APR-27"];
            AnswersDecideAll "answers-decide-all" "An answer decides all pending requests of its connection." ["CX-APR-28"];
            PendingHoldsUp "pending-holds-up" "While a request is pending, loaded threads are not listed." ["CX-APR-29", "CX-RPC-1", "CX-RPC-20"];
            AcceptedChangesAreNotMade "accepted-changes-are-not-made" "A change that was accepted is reported as completed, and not made." ["CX-FCH-3", "CX-FCH-7", "CX-FCH-8", "CX-FS-1"];

            // ---- files and command/exec
            ReadsAreText "reads-are-text" "fs/readFile returns the text of the file." ["CX-FS-1", "CX-FS-13", "CX-FS-15", "CX-FS-17", "CX-FS-19", "CX-FS-2", "CX-FS-27", "CX-FS-4"];
            WritesReturnNull "writes-return-null" "fs/writeFile returns null." ["CX-FS-2"];
            MetadataHasNoTimes "metadata-has-no-times" "fs/getMetadata returns no createdAtMs." ["CX-FS-7"];
            ExecIgnoresCwd "exec-ignores-cwd" "command/exec ignores cwd." ["CX-EXE-4", "CX-FS-27"];
            ExecDeltasComeLate "exec-deltas-come-late" "Output deltas come after the response." ["CX-EXE-17", "CX-EXE-19"];
            InputIsNotDecoded "input-is-not-decoded" "command/exec/write writes deltaBase64 as it is." ["CX-EXE-19", "CX-EXE-21", "CX-EXE-24", "CX-EXE-29"];
            ExecDeltasGoToAll "exec-deltas-go-to-all" "Output deltas go to all connections." ["CX-EXE-25", "CX-EXE-27"];

            // ---- several clients
            LeavingEndsTheTurn "leaving-ends-the-turn" "A turn ends when one of its thread's subscribers leaves." ["CX-FAN-3", "CX-UNS-5"];
            JoinersWait "joiners-wait" "Who resumes a thread in the middle of a turn gets nothing of that turn." ["CX-FAN-4"];
        }
    };
}

pub(super) use and_more;
