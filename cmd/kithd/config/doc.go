// Package config is kithd's configuration, a TOML file.
//
// A knob stands in one place, the table of [Config.Knobs]: its TOML name, the
// field that it sets, its default, its bounds, whether a running kithd takes a
// new value up, and the sentence that docs/operations.md prints. To add one, add
// the field and its row; reading, writing, checking, reloading and the page
// follow from the row (go test ./cmd/kithd/config -rewrite draws the page anew).
// The bounds of what the engine or the local scheduler take stand with them,
// in meta.Config and sitesched.Config.
//
// [Load] names everything that is wrong with a file at once, as [Mistakes]
// with line and key. A key that is left out has its default; one that is
// written down is kept as it is or refused, never replaced.
package config
