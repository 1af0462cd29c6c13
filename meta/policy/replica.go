package policy

import (
	"errors"
	"math"
	"reflect"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"kith/meta/bags"
)

// replicaType is the type of the elements of the list replicas.
var replicaType = cel.ObjectType("replica")

// replicaFields are what a replica tells, in the order in which they are shown.
var replicaFields = []struct {
	name string
	kind *cel.Type
	get  func(r *bags.Replica) ref.Val
}{
	{"site", cel.StringType, func(r *bags.Replica) ref.Val { return types.String(r.Site) }},
	{"node", cel.StringType, func(r *bags.Replica) ref.Val { return types.String(r.Node) }},
	{"age", cel.DoubleType, func(r *bags.Replica) ref.Val { return types.Double(r.Age) }},
	{"error_rate", cel.DoubleType, func(r *bags.Replica) ref.Val { return types.Double(r.ErrorRate) }},
	{"turnaround", cel.DoubleType, func(r *bags.Replica) ref.Val {
		if math.IsNaN(r.Turnaround) {
			return types.NewErr("no result of the host yet")
		}
		return types.Double(r.Turnaround)
	}},
}

// replicaTypes knows the type of replicas beside those of CEL.
type replicaTypes struct{ *types.Registry }

// replica is a replica as a value of CEL.
type replica struct{ of *bags.Replica }

// ConvertToNative implements [ref.Val]. Nobody needs it.
func (r replica) ConvertToNative(reflect.Type) (any, error) {
	return nil, errors.New("a replica is no native value")
}

// ConvertToType implements [ref.Val].
func (r replica) ConvertToType(ref.Type) ref.Val {
	return types.NewErr("a replica cannot be converted")
}

// Equal implements [ref.Val].
func (r replica) Equal(other ref.Val) ref.Val {
	o, ok := other.(replica)
	return types.Bool(ok && *o.of == *r.of)
}

// Type implements [ref.Val].
func (r replica) Type() ref.Type { return replicaType }

// Value implements [ref.Val].
func (r replica) Value() any { return r.of }

// FindStructType implements [types.Provider].
func (p *replicaTypes) FindStructType(name string) (*types.Type, bool) {
	if name == replicaType.TypeName() {
		return types.NewTypeTypeWithParam(replicaType), true
	}
	return p.Registry.FindStructType(name)
}

// FindStructFieldNames implements [types.Provider].
func (p *replicaTypes) FindStructFieldNames(name string) ([]string, bool) {
	if name != replicaType.TypeName() {
		return p.Registry.FindStructFieldNames(name)
	}
	var names []string
	for _, f := range replicaFields {
		names = append(names, f.name)
	}
	return names, true
}

// FindStructFieldType implements [types.Provider].
func (p *replicaTypes) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if name != replicaType.TypeName() {
		return p.Registry.FindStructFieldType(name, field)
	}
	for _, f := range replicaFields {
		if f.name == field {
			return &types.FieldType{
				Type:  f.kind,
				IsSet: func(any) bool { return true },
				GetFrom: func(target any) (any, error) {
					v := f.get(target.(*bags.Replica))
					if e, wrong := v.(*types.Err); wrong {
						return nil, e
					}
					return v, nil
				},
			}, true
		}
	}
	return nil, false
}
