package policy

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"

	"kith/internal/job"
	"kith/meta/bags"
	"kith/store"
)

// MaxCost bounds what evaluating one text may take, in steps of about 25 ns each. What a
// host, a site or a bag says is never longer than what the estimate goes by, so it holds
// at evaluation without counting there.
const MaxCost = 10_000

// baseCost is for the evaluation as such, and for the room of the program.
const baseCost = 10

// replicaSize is the longest that the list of replicas may be.
const replicaSize = store.MaxReplicas + 1

// costOf returns the most steps that evaluating a text may take. Each part counts, also
// those for which CEL's estimate has nothing: they take their room, and some time.
func costOf(env *cel.Env, checked *cel.Ast) (int, error) {
	estimate, err := env.EstimateCost(checked, sizes{})
	if err != nil {
		return 0, err
	}
	return int(min(estimate.Max, 1<<50)) + partsOf(checked) + baseCost, nil
}

func partsOf(checked *cel.Ast) (parts int) {
	ast.PostOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(ast.Expr) { parts++ }))
	return parts
}

// bytesOf is about what a program takes of memory, measured at texts of all kinds.
func bytesOf(source string, checked *cel.Ast) int { return 10<<10 + len(source) + 400*partsOf(checked) }

// sizes says what names and lists may come to, and what matching costs.
type sizes struct{}

// EstimateSize implements [cost.Estimator].
func (sizes) EstimateSize(n cost.AstNode) *cost.SizeEstimate {
	if n.ComputedSize() != nil || len(n.Path()) == 0 {
		return nil
	}
	if n.Type().Kind() == types.ListKind {
		return &cost.SizeEstimate{Max: replicaSize}
	}
	switch n.Path()[len(n.Path())-1] {
	case bags.Vars[bags.HostSite].Name, bags.Vars[bags.SiteName].Name, replicaFields[0].name:
		return &cost.SizeEstimate{Max: job.MaxSiteIDLength}
	}
	return &cost.SizeEstimate{Max: bags.MaxText}
}

// EstimateCallCost implements [cost.Estimator]. CEL's estimate of a match goes by the length
// of the pattern, which says nothing: at each letter a match may follow all instructions,
// each in up to half a step.
func (s sizes) EstimateCallCost(function, _ string, target *cost.AstNode, args []cost.AstNode) *cost.CallEstimate {
	if function != overloads.Matches || len(args) == 0 {
		return nil
	}
	text := args[0]
	if target != nil {
		text = *target
	}
	n, err := instructions(patternOf([]ast.Expr{args[len(args)-1].Expr()}))
	if err != nil {
		return nil
	}
	letters := cost.SafeAdd(cost.EstimateSize(s, text).Max, 1)
	return &cost.CallEstimate{CostEstimate: cost.Estimate{Max: cost.SafeMultiply(letters, uint64(n)) / 2}}
}
