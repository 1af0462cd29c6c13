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
	// Modules are all modules in the program, if asked for.
	Modules []module `json:"modules,omitempty"`
}

// module is one module that a program was built of.
type module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Sum     string `json:"sum"` // as in go.sum
}

// VersionVerb is the command version. More, if not empty, completes its help.
func VersionVerb(p *Program, more string) *cobra.Command {
	modules := false
	verb := &cobra.Command{
		Use:   "version",
		Short: "Tell the version of this program",
		Long:  strings.TrimSpace("Tell the version of this program. " + more),
		Args:  NoArgs,
		RunE:  func(*cobra.Command, []string) error { return p.printVersion(modules) },
	}
	verb.Flags().BoolVar(&modules, "modules", false, "also list the modules it was built of, with their versions and sums")
	return verb
}

// printVersion is what the command version and the flag --version do.
func (p *Program) printVersion(modules bool) error {
	b := thisBuild()
	if !modules {
		b.Modules = nil
	}
	return p.Print(b, func() string {
		var text strings.Builder
		fmt.Fprintf(&text, "%s %s, revision %s, %s, %s\n", p.Name, b.Version, b.Revision, b.Go, b.Platform)
		for _, m := range b.Modules {
			fmt.Fprintln(&text, m.Path, m.Version, m.Sum)
		}
		return text.String()
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
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Modules = append(b.Modules, module{Path: m.Path, Version: m.Version, Sum: m.Sum})
	}
	return b
}
