package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kithv1 "kith/proto/gen/kith/v1"
)

// promises are those that guests moved, by what the sites count (S4). A daemon counts since it
// started and remembers what it counted of jobs that have started, so it is asked after each heal
// and at the end: what it had counted of jobs that still waited when it was killed is lost.
type promises struct {
	// moved is the most that a site has said at one time.
	moved map[string]int64
}

// harmTeller is a site that says what guests cost.
type harmTeller interface {
	GetHarm(ctx context.Context, r *kithv1.GetHarmRequest, opts ...grpc.CallOption) (*kithv1.GetHarmResponse, error)
}

// look asks a site. A site of an earlier version, which cannot say, is no error.
func (p *promises) look(ctx context.Context, name string, s harmTeller) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := s.GetHarm(ctx, &kithv1.GetHarmRequest{Days: 1})
	if status.Code(err) == codes.Unimplemented {
		return nil
	}
	if err != nil {
		return fmt.Errorf("site %s, asked for promises that guests moved: %w", name, err)
	}
	if p.moved == nil {
		p.moved = make(map[string]int64)
	}
	p.moved[name] = max(p.moved[name], r.GetCounters().GetPromisesMoved(), r.GetJobs().GetPromisesMoved())
	return nil
}

// lookAtAll asks all sites.
func (p *promises) lookAtAll(ctx context.Context, sites []*site) error {
	var errs []error
	for _, s := range sites {
		errs = append(errs, p.look(ctx, s.Name, s.Sites))
	}
	return errors.Join(errs...)
}

// broken tells of each site that has moved any.
func (p *promises) broken() (total int, texts []string) {
	for name, n := range p.moved {
		if n > 0 {
			total += int(n)
			texts = append(texts, fmt.Sprintf("site %s: guests moved %d promises to its own jobs", name, n))
		}
	}
	slices.Sort(texts)
	return total, texts
}

// promisesKept adds what the sites said to the result.
func (c *checker) promisesKept(p *promises) {
	total, texts := p.broken()
	for _, text := range texts {
		c.problem(&c.result.PromisesMoved, "%s", text)
	}
	c.result.PromisesMoved = total
}
