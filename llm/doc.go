// Package llm holds the provider-neutral words of a model call: messages and
// their parts, usage, finish reasons, classified errors, and the [Model]
// interface that every wire adapter implements.
//
// The neutral form is what the loop reasons about. What a provider needs back
// byte for byte (signatures, encrypted reasoning, server-side items) travels
// beside it in the Raw fields and is echoed only to the provider that made it.
package llm
