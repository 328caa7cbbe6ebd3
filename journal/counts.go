package journal

// CountsCommits is implemented by stores that commit the appends of several runs
// together.
type CountsCommits interface {
	// Commits returns how many commits this process made for how many appends.
	Commits() (commits, appends int64)
}
