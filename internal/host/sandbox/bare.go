package sandbox

// Bare returns a box that restricts nothing: its commands have the rights of this
// process. But every process that a command starts ends with it, including one that
// left its session and lost its parents, so that nothing keeps running unobserved. A
// command that kills its supervisor escapes, unless this process adopts orphans
// ([Shim.Adopt]) and is not killed as well.
//
// Bare is nil if this program cannot start itself as a supervisor;
// [Machine.Unsupervised] returns the reason. It need not be closed.
func (m *Machine) Bare() *Box {
	if m == nil || !m.supervises {
		return nil
	}
	return &Box{tier: None, shim: m.shim, calls: &m.calls}
}

// Unsupervised returns why commands outside a sandbox have no supervisor on this
// machine, empty if they have one.
func (m *Machine) Unsupervised() string {
	for _, f := range m.findings {
		if f.Tier == None {
			return f.Why
		}
	}
	return ""
}

// barePlan returns the plan for the supervisor of such a command.
func barePlan(c Command) plan {
	return plan{Args: c.Args, Env: c.Env, Dir: c.Dir, Free: true, Limits: Limits{MemoryBytes: -1, Processes: -1}}
}
