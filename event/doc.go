// Package event is the journal's vocabulary: the envelope that every durable
// record has, the typed payloads, the closed list of reasons, and the outcome
// of a run.
//
// An event is a fact or a decision that has been made; folding a run's events
// in order gives its state, and no fold ever makes a decision again. The
// vocabulary only grows: a payload gains optional fields, never loses one, and
// an event of a kind that this version does not know survives a round trip.
package event
