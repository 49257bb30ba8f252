// SPDX-License-Identifier: Apache-2.0

// Package openapi holds the OpenAPI definitions of every type the API server serves, generated from the Go types.
//
// Its law: nothing here is written by hand. After a change of the k8s.io modules or of the served kinds: go generate
// ./internal/api/openapi.
package openapi

//go:generate go tool openapi-gen --output-dir . --output-pkg github.com/wherryproject/wherry/internal/api/openapi --output-file zz_generated.openapi.go --go-header-file header.txt --report-filename /dev/null k8s.io/api/core/v1 k8s.io/api/apps/v1 k8s.io/api/autoscaling/v1 k8s.io/api/autoscaling/v2 k8s.io/api/batch/v1 k8s.io/api/networking/v1 k8s.io/api/storage/v1 k8s.io/api/events/v1 k8s.io/api/discovery/v1 k8s.io/api/coordination/v1 k8s.io/api/policy/v1 k8s.io/api/authentication/v1 k8s.io/api/authorization/v1 k8s.io/api/certificates/v1 k8s.io/api/node/v1 k8s.io/api/rbac/v1 k8s.io/api/scheduling/v1 k8s.io/api/scheduling/v1alpha3 k8s.io/api/flowcontrol/v1 k8s.io/api/admissionregistration/v1 k8s.io/metrics/pkg/apis/metrics/v1beta1 k8s.io/kube-aggregator/pkg/apis/apiregistration/v1 k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/runtime k8s.io/apimachinery/pkg/version k8s.io/apimachinery/pkg/api/resource k8s.io/apimachinery/pkg/util/intstr github.com/wherryproject/wherry/internal/debug/debugrun github.com/wherryproject/wherry/internal/api/imagepolicy k8s.io/api/storagemigration/v1 k8s.io/api/resource/v1
