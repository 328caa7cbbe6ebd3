// Package llm defines the provider-neutral form of a model call: messages and their
// parts, usage, finish reasons, classified errors, and the [Model] interface that every
// provider adapter implements.
//
// The loop works with the neutral form. Data that a provider needs back byte for byte
// (signatures, encrypted reasoning, server-side items) is kept in the Raw fields and
// sent only to the provider that made it.
package llm
