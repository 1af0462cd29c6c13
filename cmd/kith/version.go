package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// buildInfo is which kith this is.
type buildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// versionVerb is "kith version".
func versionVerb(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Tell the version of this kith",
		Long:  `Tell the version of this kith. "kith sites --output json" has those of the sites.`,
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			return c.printValue(b, func() string {
				return fmt.Sprintf("kith %s, revision %s, %s, %s\n", b.Version, b.Revision, b.Go, b.Platform)
			})
		},
	}
}

// thisBuild reads what the compiler noted.
func thisBuild() buildInfo {
	b := buildInfo{Version: "unknown", Revision: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
}
