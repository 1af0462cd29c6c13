package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// buildInfo is which build this is.
type buildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// VersionVerb is the command version. More, if not empty, completes its help.
func VersionVerb(p *Program, more string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Tell the version of this program",
		Long:  strings.TrimSpace("Tell the version of this program. " + more),
		Args:  NoArgs,
		RunE:  func(*cobra.Command, []string) error { return p.printVersion() },
	}
}

// printVersion is what the command version and the flag --version do.
func (p *Program) printVersion() error {
	b := thisBuild()
	return p.Print(b, func() string {
		return fmt.Sprintf("%s %s, revision %s, %s, %s\n", p.Name, b.Version, b.Revision, b.Go, b.Platform)
	})
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
