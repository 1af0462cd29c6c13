package main

import (
	"fmt"
	"strings"
	"testing"

	kithv1 "kith/proto/gen/kith/v1"
)

func TestParseDependency(t *testing.T) {
	for text, want := range map[string]string{
		"afterok:uni-a.1.5": "OK uni-a.1.5",
		"afterok:uni-a.1.5:uni-a.1.6,afterany:uni-a.1.7,afternotok:uni-a.1.8": "OK uni-a.1.5, OK uni-a.1.6, ANY uni-a.1.7, NOT_OK uni-a.1.8",
		"singleton,afterany:uni-a.1.7":                                        "ANY uni-a.1.7, singleton",
	} {
		d, err := parseDependency(text)
		var parts []string
		for _, a := range d.after {
			parts = append(parts, fmt.Sprint(strings.TrimPrefix(a.GetCondition().String(), "CONDITION_"), " ", a.GetId()))
		}
		if d.singleton {
			parts = append(parts, "singleton")
		}
		if got := strings.Join(parts, ", "); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		"":                                       "write afterok:ID",
		"afterok":                                "which job or bag",
		"afterok:":                               "which job or bag",
		"5":                                      "write afterok:ID",
		"afterok:5":                              "5",
		"afterok:uni-a.1.5?afterok:uni-a.1.6":    "all must be met",
		"after:uni-a.1.5+10":                     "--hold",
		"aftercorr:uni-a.1.5":                    "afterok",
		"singleton:uni-a.1.5":                    "singleton",
		"afterok:uni-a.1.5_3":                    "is a task",
		"afterok:uni-a.1.5,":                     "write afterok:ID",
		"afterok" + strings.Repeat(":a.1.1", 65): "at most 64",
	} {
		if _, err := parseDependency(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60s: %v, want an error that says %q", text, err, says)
		}
	}
}

func TestAfterLines(t *testing.T) {
	got := afterLines([]*kithv1.Dependency{
		{Id: "a.1.1", Condition: kithv1.Dependency_CONDITION_OK, State: kithv1.Dependency_STATE_MET},
		{Id: "a.1.2", Condition: kithv1.Dependency_CONDITION_NOT_OK, State: kithv1.Dependency_STATE_WAITS},
	}, true)
	if text := strings.Join(got, "; "); text != "afterok:a.1.1, met; afternotok:a.1.2, not yet; singleton" {
		t.Error(text)
	}
}
