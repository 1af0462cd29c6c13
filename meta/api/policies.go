package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"kith/internal/identity"
	"kith/internal/job"
	"kith/meta"
	"kith/meta/bags"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// Policies of bags.

// policyFields are the fields of a message that have the texts.
func policyFields(p *kithv1.BagPolicies) [bags.TextCount]*string {
	return [bags.TextCount]*string{
		bags.Requirements: &p.Requirements, bags.Rank: &p.Rank, bags.Concurrency: &p.Concurrency,
		bags.Deadline: &p.Deadline, bags.Replicate: &p.Replicate, bags.Sites: &p.Sites,
	}
}

func policyTexts(p *kithv1.BagPolicies) (texts store.BagPolicies) {
	if p != nil {
		for t, text := range policyFields(p) {
			texts.Texts[t] = *text
		}
	}
	return texts
}

// policiesMessage is the policies of a bag, nil if it never had any.
func policiesMessage(p *store.BagPolicies) *kithv1.BagPolicies {
	m := &kithv1.BagPolicies{Etag: strconv.FormatUint(uint64(p.Version), 10)}
	for t, text := range policyFields(m) {
		*text = p.Texts[t]
	}
	return m
}

// textErrors are what is wrong with the texts of a field, by their fields.
func textErrors(field string, err error) error {
	wrong, ok := errors.AsType[*bags.TextsError](err)
	if !ok {
		return err
	}
	var f fieldErrors
	for _, m := range wrong.Mistakes {
		f.add(field+"."+m.Text.String(), m.String())
	}
	return f
}

// checkTexts refuses policies that are wrong.
func (s *Server) checkTexts(ctx context.Context, field string, p *kithv1.BagPolicies) error {
	texts := policyTexts(p)
	if !texts.Stated() {
		return nil
	}
	var err error
	if e := s.Node.Glance(ctx, func(_ job.Time, v meta.Views) { err = v.CheckTexts(&texts) }); e != nil {
		return e
	}
	return textErrors(field, err)
}

// SetBagPolicies implements kithv1.BagServiceServer.
func (s *Server) SetBagPolicies(ctx context.Context, r *kithv1.SetBagPoliciesRequest) (*kithv1.SetBagPoliciesResponse, error) {
	id, err := bagID(r.GetBagId())
	if err != nil {
		return nil, err
	}
	version, err := strconv.ParseUint(r.GetPolicies().GetEtag(), 10, 32)
	if err != nil {
		return nil, &FieldError{Field: "policies.etag", Reason: fmt.Sprintf("%q: must be that of the policies that are replaced, as GetBag returns it", r.GetPolicies().GetEtag())}
	}
	if err := s.checkTexts(ctx, "policies", r.GetPolicies()); err != nil {
		return nil, err
	}
	texts := policyTexts(r.GetPolicies())
	if _, err := s.Node.Ask(ctx, func(token uint64) meta.Event {
		return meta.SetPolicies{Token: token, Bag: id, Texts: texts.Texts, Version: uint32(version), Actor: identity.From(ctx).Actor}
	}); err != nil {
		return nil, err
	}
	s.told(ctx, "policies set", "bag_id", r.GetBagId())
	return &kithv1.SetBagPoliciesResponse{Etag: strconv.FormatUint(version+1, 10)}, nil
}

// SetBagBudget implements kithv1.BagServiceServer.
func (s *Server) SetBagBudget(ctx context.Context, r *kithv1.SetBagBudgetRequest) (*kithv1.SetBagBudgetResponse, error) {
	id, err := bagID(r.GetBagId())
	if err != nil {
		return nil, err
	}
	var f fieldErrors
	if checkBudget(&f, "budget_processor_seconds", r.GetBudgetProcessorSeconds()); len(f) > 0 {
		return nil, f
	}
	if _, err := s.Node.Ask(ctx, func(token uint64) meta.Event {
		return meta.SetBudget{Token: token, Bag: id, Budget: uint64(r.GetBudgetProcessorSeconds()), Actor: identity.From(ctx).Actor}
	}); err != nil {
		return nil, err
	}
	s.told(ctx, "budget set", "bag_id", r.GetBagId(), "processor_seconds", r.GetBudgetProcessorSeconds())
	b, err := s.GetBag(ctx, &kithv1.GetBagRequest{BagId: r.GetBagId()})
	return &kithv1.SetBagBudgetResponse{Bag: b.GetBag()}, err
}

// CheckPolicies implements kithv1.BagServiceServer.
func (s *Server) CheckPolicies(ctx context.Context, r *kithv1.CheckPoliciesRequest) (*kithv1.CheckPoliciesResponse, error) {
	var id job.ID
	var err error
	if r.GetBagId() != "" {
		if id, err = bagID(r.GetBagId()); err != nil {
			return nil, err
		}
	}
	var texts *store.BagPolicies
	if r.GetPolicies() != nil {
		p := policyTexts(r.GetPolicies())
		texts = &p
	}
	var views []meta.PolicyView
	var leftOut int
	if e := s.Node.Glance(ctx, func(now job.Time, v meta.Views) { views, leftOut, err = v.CheckPolicies(now, id, texts) }); e != nil {
		return nil, e
	}
	if err != nil {
		return nil, textErrors("policies", err)
	}
	resp := &kithv1.CheckPoliciesResponse{HostsLeftOut: int32(leftOut)}
	for _, v := range views {
		h := &kithv1.HostPolicies{SiteId: string(v.Site), Node: clip(v.Node), Asked: v.Asked, Offered: v.Offered}
		for _, g := range v.Given {
			h.Values = append(h.Values, &kithv1.PolicyValue{Policy: g.Text.String(), Value: clip(g.Value), Undefined: g.Undefined, Part: clip(g.Part)})
		}
		resp.Hosts = append(resp.Hosts, h)
	}
	return resp, nil
}
