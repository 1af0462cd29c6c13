package lab

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

func TestZZ004(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("SEEDS"))
	if n == 0 {
		t.Skip()
	}
	began := time.Now()
	r, err := Execute(context.Background(), Selection{Experiment: localPriority()}, Env{Seeds: n})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(time.Since(began))
	for _, f := range r.Findings {
		fmt.Printf("%s %s\n   %s | %s\n   %s\n   %s\n", f.ID, f.Verdict, f.Source, f.Band, f.Measured, f.Note)
	}
	for _, tb := range r.Tables {
		fmt.Println(tb.Markdown())
	}
	fmt.Println(len(r.Plots))
	os.MkdirAll("/tmp/lp/plots", 0o755)
	for _, p := range r.Plots {
		f, _ := os.Create("/tmp/lp/plots/" + p.Name + ".svg")
		if err := p.WriteSVG(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}
