// Package conserve measures what the papers' schemes of placement gain and pay if
// queued copies are added and moved (placement.conserve, ADR 0026): each scheme,
// K and load is run without and with it, on the same jobs.
package conserve
