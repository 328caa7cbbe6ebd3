package sandbox

// Bare is a box that holds nothing: its commands have the rights of this
// process. But everything that one starts ends with it, also what has left its
// session and lost its parents, so that nothing of it acts when nobody watches
// any more. A command that kills its supervisor gets away, unless this process
// adopts orphans ([Shim.Adopt]) and is not killed as well. Bare is nil where
// this program cannot start itself as a supervisor; [Machine.Unsupervised] says
// why. It need not be closed.
func (m *Machine) Bare() *Box {
	if m == nil || !m.supervises {
		return nil
	}
	return &Box{tier: None, shim: m.shim, calls: &m.calls}
}

// Unsupervised says why commands outside a sandbox have no supervisor here. It is
// empty where they have one.
func (m *Machine) Unsupervised() string {
	for _, f := range m.findings {
		if f.Tier == None {
			return f.Why
		}
	}
	return ""
}

// barePlan is what the supervisor of such a command is told.
func barePlan(c Command) plan {
	return plan{Args: c.Args, Env: c.Env, Dir: c.Dir, Free: true, Limits: Limits{MemoryBytes: -1, Processes: -1}}
}
