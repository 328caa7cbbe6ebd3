// Package event defines the events of a journal: the envelope of every durable
// record, the typed payloads, the closed list of reasons, and the outcome of a
// run.
//
// An event is a fact or a decision that has been made. Folding a run's events
// in order gives its state, and a fold never makes a decision again. Payloads
// only grow: they gain optional fields and never lose one. An event of a kind
// that this version does not know is preserved when it is read and written.
package event
