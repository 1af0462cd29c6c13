// Package api serves the gRPC services that users and operators call:
// JobService, BagService, SiteService and FileService of kith.v1.
//
// It checks the shape of what comes in, turns it into events of package meta,
// waits for the durable answer and turns that into messages and errors. It
// decides nothing: every rule about jobs is in the engine. What it needs of
// the site is in [Node] and [Output].
//
// The interceptors Unary and Stream make statuses of what methods return: a gRPC
// server that has the services needs both. Every error carries google.rpc.ErrorInfo with a reason that programs can
// rely on; errors.go is the one table of them.
package api
