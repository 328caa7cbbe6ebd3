package sqlite

// checkpointer moves the log into the database.
type checkpointer struct{}

func (*checkpointer) afterCommit(*conn) {}
