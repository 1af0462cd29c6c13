package api

import (
	"errors"
	"fmt"
	"strings"

	"kith/internal/job"
	"kith/meta"
	kithv1 "kith/proto/gen/kith/v1"
)

// checkAfter returns what is wrong with what a job or a bag is to wait for by itself. field
// is the job or the bag.
func checkAfter(f *fieldErrors, field string, after []*kithv1.Dependency, singleton bool) {
	most := job.MaxDependencies
	if singleton {
		most--
	}
	if len(after) > most {
		f.add(field+".after", fmt.Sprintf("%d of them, at most %d, %d beside singleton; let a job wait for some, and this one for that job", len(after), job.MaxDependencies, job.MaxDependencies-1))
		return
	}
	for i, d := range after {
		at := fmt.Sprintf("%s.after[%d]", field, i)
		if _, err := job.ParseID(d.GetId()); err != nil {
			reason := err.Error()
			if bag, index, err := job.ParseTaskName(d.GetId()); err == nil {
				reason = fmt.Sprintf("%s is a task; one task cannot be waited for: wait for its bag, %v, not for index %d alone", d.GetId(), bag, index)
			}
			f.add(at+".id", reason)
		}
		if c := d.GetCondition(); c < kithv1.Dependency_CONDITION_OK || c > kithv1.Dependency_CONDITION_NOT_OK {
			f.add(at+".condition", fmt.Sprintf("%d: choose OK, ANY or NOT_OK", c))
		}
		if d.GetState() != 0 {
			f.add(at+".state", "is set by Kith; leave it empty")
		}
	}
}

// afterOf converts dependencies that nothing is wrong with.
func afterOf(after []*kithv1.Dependency, singleton bool) ([]job.Dependency, error) {
	var list []job.Dependency
	for _, d := range after {
		on, err := job.ParseID(d.GetId())
		if err != nil {
			return nil, err
		}
		list = append(list, job.Dependency{On: on, Condition: job.Condition(d.GetCondition())})
	}
	if singleton {
		list = append(list, job.Dependency{Condition: job.Singleton})
	}
	return list, nil
}

// afterMessages converts back.
func afterMessages(after []job.Dependency) (list []*kithv1.Dependency, singleton bool) {
	for _, d := range after {
		if d.Condition == job.Singleton {
			singleton = true
			continue
		}
		list = append(list, &kithv1.Dependency{
			Id: d.On.String(), Condition: kithv1.Dependency_Condition(d.Condition), State: kithv1.Dependency_State(d.State),
		})
	}
	return list, singleton
}

// fieldOfDependency names the field of a submission that says what cannot be waited for.
func fieldOfDependency(field string, err error) error {
	var bad *meta.DependencyError
	if !errors.As(err, &bad) {
		return err
	}
	return &FieldError{Field: fmt.Sprintf("%s.after[%d].id", field, bad.Index), Reason: bad.Reason, Err: err}
}

// waitsFor says in words what a blocked job or bag waits for.
func waitsFor(after []job.Dependency) string {
	var parts []string
	for _, d := range after {
		switch {
		case d.State != job.DependencyWaits:
		case len(parts) == 4:
			return "waits for " + strings.Join(parts, ", ") + fmt.Sprintf(" and %d more", job.Waiting(after)-len(parts))
		case d.Condition == job.Singleton:
			parts = append(parts, "earlier ones of its name (singleton)")
		default:
			parts = append(parts, fmt.Sprintf("%v (%v)", d.On, d.Condition))
		}
	}
	return "waits for " + strings.Join(parts, ", ")
}
