// Package sandbox runs commands behind a boundary of the operating system.
//
// A [Tier] is a kind of boundary. [Detect] tries each one by running a command
// in it; [Machine.Open] makes a [Box] in a tier, with a [Policy] that says what
// commands in it may reach; [Box.Start] runs a command there.
//
// All tiers need a process of ours beside the command: the *supervisor*, which
// is this very program started again. A program that wants a sandbox therefore
// calls [Main] before anything else, and hands what that returns to [Detect].
//
//	func main() {
//		shim := sandbox.Main()
//		...
//		machine := sandbox.Detect(ctx, shim)
//
// In the bubblewrap tier the command has file system, processes, network and
// IPC of its own; the supervisor is the first process in there, so that its end
// is the end of all others. The namespaces tier is the same without bwrap: the
// supervisor starts in new namespaces and builds the file system itself. In the
// landlock tier the command lives among the machine's other processes, under
// rules that the kernel enforces on it and on all that it starts. In all a
// seccomp filter refuses the system calls by which such boundaries have been
// left before.
//
// docs/design/sandbox.md says what each tier holds and what it does not.
package sandbox
