// SPDX-License-Identifier: Apache-2.0

package api

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/wherryproject/wherry/internal/api/validation"
)

const (
	flowSchemas    = "flowschemas"
	priorityLevels = "prioritylevelconfigurations"
)

// flowControlKinds say how what the server can serve is shared out.
func flowControlKinds() []*kind {
	gv := flowcontrolv1.SchemeGroupVersion
	spec := fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
	rest := fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	return []*kind{
		{gv: gv, name: "FlowSchema", plural: flowSchemas, singular: "flowschema",
			object: of[flowcontrolv1.FlowSchema], list: of[flowcontrolv1.FlowSchemaList],
			rules: typed[*flowcontrolv1.FlowSchema]{
				prepareCreate: func(s *flowcontrolv1.FlowSchema) { s.Status, s.Generation = flowcontrolv1.FlowSchemaStatus{}, 1 },
				validate:      validation.ValidateFlowSchema,
				prepareUpdate: func(s, old *flowcontrolv1.FlowSchema) {
					s.Status = old.Status
					if !equality.Semantic.DeepEqual(s.Spec, old.Spec) {
						s.Generation = old.Generation + 1
					}
				},
				validateUpdate: validation.ValidateFlowSchemaUpdate,
				reset:          rest,
			}.rules(),
			status: status(typed[*flowcontrolv1.FlowSchema]{
				prepareUpdate: func(s, old *flowcontrolv1.FlowSchema) { s.Spec = old.Spec },
				reset:         spec,
			}.rules())},
		{gv: gv, name: "PriorityLevelConfiguration", plural: priorityLevels, singular: "prioritylevelconfiguration",
			object: of[flowcontrolv1.PriorityLevelConfiguration], list: of[flowcontrolv1.PriorityLevelConfigurationList],
			rules: typed[*flowcontrolv1.PriorityLevelConfiguration]{
				prepareCreate: func(p *flowcontrolv1.PriorityLevelConfiguration) {
					p.Status, p.Generation = flowcontrolv1.PriorityLevelConfigurationStatus{}, 1
				},
				validate: validation.ValidatePriorityLevelConfiguration,
				prepareUpdate: func(p, old *flowcontrolv1.PriorityLevelConfiguration) {
					p.Status = old.Status
					if !equality.Semantic.DeepEqual(p.Spec, old.Spec) {
						p.Generation = old.Generation + 1
					}
				},
				validateUpdate: validation.ValidatePriorityLevelConfigurationUpdate,
				reset:          rest,
			}.rules(),
			status: status(typed[*flowcontrolv1.PriorityLevelConfiguration]{
				prepareUpdate: func(p, old *flowcontrolv1.PriorityLevelConfiguration) { p.Spec = old.Spec },
				reset:         spec,
			}.rules())},
	}
}
