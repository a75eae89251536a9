// Rules for the explorer's JavaScript.

import js from "@eslint/js";
import globals from "globals";

export default [
  js.configs.recommended,
  {
    languageOptions: { globals: globals.browser },
    rules: {
      "max-len": ["error", { code: 120 }],
      "no-var": "error",
      "prefer-const": "error",
      eqeqeq: "error",
    },
  },
];
