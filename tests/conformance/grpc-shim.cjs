// SPDX-License-Identifier: Apache-2.0
// node --require: lets grpc-node's interop client and server run on the npm packages, on loopback only.
const Module = require('module'), grpc = require('@grpc/grpc-js')
const bind = grpc.Server.prototype.bindAsync
grpc.Server.prototype.bindAsync = function (where, ...a) { return bind.call(this, where.replace(/^(0\.0\.0\.0|\[::\]|localhost):/, '127.0.0.1:'), ...a) }
const give = { '../any_grpc': { client: grpc, server: grpc }, '../../packages/proto-loader': require('@grpc/proto-loader'), 'google-auth-library': { GoogleAuth: class {} }, lodash: require('lodash'), minimist: require('minimist') }
const load = Module._load
Module._load = function (name, ...a) { return Object.hasOwn(give, name) ? give[name] : load.call(this, name, ...a) }
