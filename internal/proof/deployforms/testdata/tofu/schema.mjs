// Writes provider/schema.json: the schemas of the resources and data sources that deploy/terraform uses, as `tofu providers schema`
// would say them. They are taken from the npm package that has a class for each type of hashicorp/aws, made from the provider itself:
//
//   npm pack @cdktf/provider-aws@21.22.1 && tar xzf cdktf-provider-aws-21.22.1.tgz
//   node schema.mjs package/lib provider/schema.json
import fs from "node:fs";

const [lib, target] = process.argv.slice(2);
const folders = [
  "cloudwatch-dashboard", "cloudwatch-log-group", "cloudwatch-metric-alarm", "data-aws-caller-identity", "data-aws-partition",
  "data-aws-region", "dynamodb-table", "iam-role", "iam-role-policy", "iam-role-policy-attachment", "lambda-alias", "lambda-event-source-mapping", "lambda-function",
  "lambda-function-event-invoke-config", "lambda-function-recursion-config", "lambda-function-url", "scheduler-schedule", "sqs-queue",
  "sqs-queue-redrive-allow-policy",
];
const types = {
  string: "string", number: "number", boolean: "bool", numberList: ["list", "number"], stringList: ["list", "string"],
  booleanMap: ["map", "bool"], numberMap: ["map", "number"], stringMap: ["map", "string"],
};
const getters = {
  getStringAttribute: "string", getNumberAttribute: "number", getBooleanAttribute: "bool", getListAttribute: ["list", "string"],
  getStringMapAttribute: ["map", "string"],
};

// What the module says of the provider itself.
const text = { type: "string", optional: true };
const tags = { nesting_mode: "list", max_items: 1, block: { attributes: { tags: { type: types.stringMap, optional: true } } } };
const provider = { version: 0, block: { attributes: { region: text, profile: text }, block_types: { default_tags: tags } } };

// interfaces are the declared configurations: which property may be left out, and which is a list.
function interfaces(declarations) {
  const found = {};
  for (const [, name, body] of declarations.matchAll(/^export interface (\w+)[^{]*\{\n([\s\S]*?)^\}/gm)) {
    const properties = [...body.matchAll(/^ {4}readonly (\w+)(\??): ([^;]*)/gm)];
    found[name] = Object.fromEntries(properties.map(([, property, mark, type]) => [property, { optional: mark === "?", type }]));
  }
  return found;
}

// converted are the attributes that a function hands to HCL.
function converted(body) {
  const attribute =
    /^ {8,12}(\w+): \{\s+value: ([\s\S]*?),\s+isBlock: (true|false),\s+type: "(\w+)",\s+storageClassType: "(\w+)",/gm;
  return [...body.matchAll(attribute)].map(([, name, value, isBlock, type, storage]) => ({ name, value, isBlock, type, storage }));
}

const camel = (name) => name.replace(/_+(\w)/g, (_, letter) => letter.toUpperCase());

function blockOf(source, body, configuration) {
  const block = { attributes: {}, block_types: {} };
  for (const a of converted(body)) {
    const declared = source.interfaces[configuration]?.[camel(a.name)];
    if (!declared) throw new Error(`${configuration} has no ${a.name}`);
    if (a.isBlock === "false") {
      if (!types[a.storage]) throw new Error(`${configuration}.${a.name} is a ${a.storage}`);
      const type = a.type === "set" ? ["set", types[a.storage][1]] : types[a.storage];
      block.attributes[a.name] = { type, [declared.optional ? "optional" : "required"]: true };
    } else if (a.name !== "timeouts") {
      const converter = a.value.match(/(\w+)ToHclTerraform/)[1];
      block.block_types[a.name] = {
        nesting_mode: a.type === "set" ? "set" : "list",
        ...(declared.optional ? {} : { min_items: 1 }),
        ...(declared.type.includes("[]") ? {} : { max_items: 1 }),
        block: blockOf(source, source.functions[converter], converter[0].toUpperCase() + converter.slice(1)),
      };
    }
  }
  return block;
}

function read(folder) {
  const code = fs.readFileSync(`${lib}/${folder}/index.js`, "utf8");
  const declarations = fs.readFileSync(`${lib}/${folder}/index.d.ts`, "utf8");
  const functions = [...code.matchAll(/^function (\w+)ToHclTerraform\(struct\) \{\n([\s\S]*?)^\}/gm)];
  const source = { interfaces: interfaces(declarations), functions: Object.fromEntries(functions.map(([, name, body]) => [name, body])) };
  const configuration = declarations.match(/^export interface (\w+Config) extends/m)[1];
  const block = blockOf(source, code.match(/synthesizeHclAttributes\(\) \{([\s\S]*?)\n    \}/)[1], configuration);
  const computed = /\/\/ (\w+) - computed: true, optional: false, required: false\n\s+get \w+\(\) \{\s+return this\.(\w+)\(/g;
  for (const [, name, getter] of code.slice(code.lastIndexOf("\nclass ")).matchAll(computed)) {
    if (getters[getter] && !block.attributes[name]) block.attributes[name] = { type: getters[getter], computed: true };
  }
  // The package does not say which optional attributes AWS fills in: identities, names from a prefix, all of a data source.
  for (const [name, a] of Object.entries(block.attributes)) {
    const filled = name === "id" || (name === "name" && block.attributes.name_prefix) || folder.startsWith("data-");
    if (a.optional && filled) a.computed = true;
  }
  return [code.match(/tfResourceType = "(\w+)"/)[1], { version: 0, block }, declarations.match(/hashicorp\/aws\/([\d.]+)\/docs/)[1]];
}

const parts = { data_source_schemas: [], resource_schemas: [] };
let version = "";
for (const folder of folders) {
  const [name, schema, of] = read(folder);
  version = of;
  parts[folder.startsWith("data-") ? "data_source_schemas" : "resource_schemas"].push(`"${name}":${JSON.stringify(schema)}`);
}
const lists = Object.entries(parts).map(([name, lines]) => `"${name}":{\n${lines.join(",\n")}}`);
fs.writeFileSync(target, `{"version":"${version}",\n"provider":${JSON.stringify(provider)},\n${lists.join(",\n")}}\n`);
