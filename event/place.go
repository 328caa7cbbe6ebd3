package event

// Place is the machine that a run works on, because its files are there. The zero value
// is any machine.
type Place struct {
	// Host is a machine by its name.
	Host string `json:"host,omitempty"`
	// Label is something that machines have. Those that have it are alike for the run.
	Label string `json:"label,omitempty"`
	// Repo is a repository that is cloned for the run, and Ref what is checked out. Host
	// is the machine of the clone, once it is made.
	Repo string `json:"repo,omitempty"`
	Ref  string `json:"ref,omitempty"`
}

// String names the place, for "no worker has …".
func (p Place) String() string {
	switch {
	case p.Repo != "" && p.Host != "":
		return "the clone of " + p.Repo + " on the host " + p.Host
	case p.Repo != "":
		return "a clone of " + p.Repo
	case p.Label != "":
		return "the label " + p.Label
	}
	return "the host " + p.Host
}
