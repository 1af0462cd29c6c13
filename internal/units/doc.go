// Package units reads and writes durations and sizes as people put them into
// files: "5s", "1h30m", "512MiB", "10GB".
package units
