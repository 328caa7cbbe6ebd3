import{a}from"./chunk-BON4IMGG.js";import"./chunk-5NP4TL53.js";export{a as Changes};
