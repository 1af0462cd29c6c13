package policy

import (
	"math"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"kith/meta/bags"
)

// The language: what of CEL there is, its variables and its own functions.

// replicasName is the list of the runs of a task that are under way.
const replicasName = "replicas"

// divide stands for the division of CEL, which gives infinity for a divisor of 0.
const divide = "divide"

// library is what of CEL's functions there is. Times, durations and conversions are not.
var library = []string{
	operators.Conditional, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot,
	operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
	operators.Add, operators.Subtract, operators.Multiply, operators.Negate, operators.Index, operators.In, operators.NotStrictlyFalse,
	overloads.Contains, overloads.StartsWith, overloads.EndsWith, overloads.Matches, overloads.Size, overloads.TypeConvertDouble,
}

func newEnv(provider *replicaTypes) (*cel.Env, error) {
	subset := env.NewLibrarySubset().AddIncludedMacros(operators.Has, operators.All, operators.Exists)
	for _, name := range library {
		subset.AddIncludedFunctions(env.NewFunction(name))
	}
	options := []cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(subset)),
		cel.CustomTypeProvider(provider), cel.CustomTypeAdapter(provider),
		cel.Variable(replicasName, cel.ListType(replicaType)),
		number2("mod", mod), number2("min", lesser), number2("max", greater), number2(divide, quotient),
		cel.Function("floor", cel.Overload("floor_double", []*cel.Type{cel.DoubleType}, cel.DoubleType,
			cel.UnaryBinding(func(v ref.Val) ref.Val { return types.Double(math.Floor(float64(v.(types.Double)))) }))),
	}
	for _, v := range bags.Vars {
		options = append(options, cel.Variable(v.Name, [...]*cel.Type{bags.Number: cel.DoubleType, bags.String: cel.StringType, bags.Bool: cel.BoolType}[v.Type]))
	}
	return cel.NewCustomEnv(options...)
}

// number2 declares a function of two numbers.
func number2(name string, f func(a, b float64) ref.Val) cel.EnvOption {
	return cel.Function(name, cel.Overload(name+"_double_double", []*cel.Type{cel.DoubleType, cel.DoubleType}, cel.DoubleType,
		cel.BinaryBinding(func(a, b ref.Val) ref.Val { return f(float64(a.(types.Double)), float64(b.(types.Double))) })))
}

func quotient(a, b float64) ref.Val {
	if b == 0 {
		return types.NewErr("division by zero")
	}
	return types.Double(a / b)
}

// mod has the sign of the divisor: what is counted in rounds never is negative.
func mod(a, b float64) ref.Val {
	if b == 0 {
		return types.NewErr("division by zero")
	}
	return types.Double(a - b*math.Floor(a/b))
}

func lesser(a, b float64) ref.Val  { return types.Double(math.Min(a, b)) }
func greater(a, b float64) ref.Val { return types.Double(math.Max(a, b)) }

// box makes values of variables into those of CEL.
func box(t bags.Type, number float64, text string) any {
	switch t {
	case bags.String:
		return types.String(text)
	case bags.Bool:
		return types.Bool(number != 0)
	}
	return types.Double(number)
}
